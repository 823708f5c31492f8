"""What a handle stands on: the open graph, and whose default branch, actor and settings it speaks with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.engine.arguments import check_text, checked_settings
from omnigraph.engine.core import GraphCore
from omnigraph.engine.reading.selectors import Moment, Pinned, Selector, pinned
from omnigraph.engine.settings import RequestSettings, request_settings
from omnigraph.errors import InvalidRequest
from omnigraph.manifest.builder import MAIN


@dataclass(frozen=True, slots=True)
class Context:
    """`pinned_at`: the state that a read-only view is fixed to, unless a call names another. `capped`: calls are of others,
    who may lower the limits of this process and not raise them. `explains`: a read answers its plan instead of its rows.
    """

    core: GraphCore
    branch: str = MAIN
    actor: str | None = None
    read_only: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    pinned_at: Selector | None = None
    capped: bool = False
    explains: bool = False

    def settings_of(self, given: Mapping[str, Any] | None) -> RequestSettings:
        """What a read runs under: the process's defaults, those of the handle, those of the call. Raises InvalidRequest
        (`invalid_setting`).
        """
        asked = {**self.settings, **checked_settings(given)}
        return request_settings(asked, self.core.settings, capped=self.capped)

    def writable(self, branch: str | None = None) -> str:
        """The branch that a write goes to. Raises InvalidRequest on a read-only handle, or for what is no name."""
        check_text(branch, "branch")
        if self.read_only:
            raise InvalidRequest("This handle is read-only.", effects="none")
        return self.branch if branch is None else branch

    def selector(
        self,
        branch: str | None = None,
        snapshot: str | None = None,
        as_of: Moment | None = None,
    ) -> Selector:
        """What a read means. Raises InvalidRequest for what can't be a name, a commit id or a time."""
        if branch is None and snapshot is None and as_of is None and self.pinned_at is not None:
            return self.pinned_at
        return Selector.asked(branch, snapshot, as_of)

    def state(self, branch: str | None = None, snapshot: str | None = None, as_of: Moment | None = None) -> Pinned:
        """The state that is read. Raises BranchNotFound, CommitNotFound, HistoryReclaimed, StorageFailure."""
        return pinned(self.core, self.selector(branch, snapshot, as_of), self.branch)
