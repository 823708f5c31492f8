"""Commit ids and branch names as types of their own, so that one can't be passed for the other."""

from __future__ import annotations

import re
from dataclasses import dataclass

from omnigraph.manifest.keys import VERSION_LIMIT

_COMMIT_ID = re.compile(r"(?P<branch>.+)@(?P<version>[1-9][0-9]{0,18})-(?P<nonce>[0-9a-f]{16})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CommitId:
    """`<branch>@<version>-<nonce>`: names the manifest object that published it, so that one GET finds it.

    >>> CommitId.parse("main@42-7f3c9a0011223344").version
    42
    """

    branch: str
    version: int
    nonce: str  # 16 hex digits

    def __str__(self) -> str:
        return f"{self.branch}@{self.version}-{self.nonce}"

    @classmethod
    def parse(cls, text: str) -> CommitId:
        """Raises ValueError if the text is no commit id."""
        match = _COMMIT_ID.fullmatch(text)
        if match is None or int(match["version"]) >= VERSION_LIMIT:  # no key could name it
            raise ValueError(f"not a commit id: {text!r}")
        return cls(match["branch"], int(match["version"]), match["nonce"])
