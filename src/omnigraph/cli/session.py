"""One run of the command: the global options as given, and what every command needs of them.

Opens graphs, takes a cluster's lock around writes, asks before harm, speaks on stderr. Keeps how far the command had
come, which is what a failure is judged by.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from omnigraph.cli import terminal
from omnigraph.cli.controls import shown_text
from omnigraph.cli.errors import ConsentRequired, Declined, Progressed
from omnigraph.cli.forms import Form
from omnigraph.cli.operator_config import OperatorConfig, Output, Place, read_operator_config
from omnigraph.cli.output import check_writable, chosen_output
from omnigraph.cli.scope import Addressing, Root, ScopeClass, StoreTarget, check_taken, locate, resolve
from omnigraph.cli.terminal import Color

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph

_T = TypeVar("_T")


@dataclass
class Session:
    """`given` holds the global options that stood on the command line, before or after the command."""

    words: list[str] = field(default_factory=list[str])
    given: dict[str, Any] = field(default_factory=dict[str, Any])
    takes: ScopeClass = "local"
    writes: bool = False
    source_name: str | None = None  # what a diagnostic's position is in
    _sent: bool = False
    _staged: bool = False
    _key: str | None = None
    _root: Root | None = None

    # global options

    @property
    def json(self) -> bool:
        return bool(self.given.get("json"))

    @property
    def quiet(self) -> bool:
        return bool(self.given.get("quiet"))

    @property
    def verbose(self) -> bool:
        return bool(self.given.get("verbose"))

    @property
    def yes(self) -> bool:
        return bool(self.given.get("yes"))

    @property
    def color(self) -> Color:
        return cast("Color", self.given.get("color", "auto"))

    @property
    def progress(self) -> str:
        return str(self.given.get("progress", "auto"))

    @property
    def timeout_seconds(self) -> int | None:
        return cast("int | None", self.given.get("timeout"))

    @property
    def actor(self) -> str | None:
        return cast("str | None", self.given.get("actor")) or self.config.actor

    def addressing(self, uri: str | None = None) -> Addressing:
        names = ("store", "server", "cluster", "graph", "profile")
        return Addressing(uri, **{name: self.given.get(name) for name in names})

    @cached_property
    def config(self) -> OperatorConfig:
        config = read_operator_config(os.environ)
        for warning in config.warnings:
            self.note(f"warning: {config.path.name}: {warning}")
        return config

    # speaking

    def note(self, text: str) -> None:
        """A line for people on stderr, unless --quiet."""
        if not self.quiet:
            terminal.say(shown_text(text))

    def heed_logs(self) -> None:
        """Send the engine's log to stderr, where it can't mix with data: warnings, everything with --verbose."""
        import logging

        import structlog

        level = logging.DEBUG if self.verbose else logging.ERROR if self.quiet else logging.WARNING
        structlog.configure(
            processors=[structlog.processors.add_log_level, _log_line],
            wrapper_class=structlog.make_filtering_bound_logger(level),
            logger_factory=lambda *_: _Told(),
        )

    def form(
        self,
        asked: str | None = None,
        *,
        out: str | None = None,
        meta: bool = False,
        neutralize_formulas: bool = False,
    ) -> Form:
        """How the answer is to look. Raises UsageRefused for options that contradict each other."""
        out = None if out == "-" else out
        check_writable(out)
        output = chosen_output(cast("Output | None", asked), json=self.json, standing=self._standing_output(), out=out)
        return Form(output, out, meta, self.color, self.config.table, neutralize_formulas)

    def _standing_output(self) -> Output | None:
        name = self.given.get("profile") or os.environ.get("OMNIGRAPH_PROFILE")
        place = self.config.profiles.get(str(name), Place()) if name else self.config.defaults
        return place.output

    # where

    def refuse_addressing(self) -> None:
        """For commands without a graph. Raises UsageRefused."""
        check_taken(self.addressing(), "local")

    def root(self, uri: str | None = None) -> Root:
        """The graph root that the options mean. Raises UsageRefused."""
        if self._root is None:
            self._root = locate(resolve(self.addressing(uri), self.config, os.environ, self.takes))
        return self._root

    @property
    def here(self) -> tuple[str, ...]:
        """The options that lead to the same graph again."""
        return () if self._root is None else self._root.spelled

    @contextmanager
    def reading(self, uri: str | None = None) -> Generator[Graph]:
        """The graph, to read."""
        root = self.root(uri)
        self.heed_logs()
        from omnigraph.engine.graph import open_graph

        with root.opening():
            graph = open_graph(root.uri, branch=_branch(root), actor=self.actor, mode="r")
        yield graph

    @contextmanager
    def writing(self, uri: str | None = None) -> Generator[Graph]:
        """The graph, to write, under its cluster's lock if it has one; says on stderr where it writes."""
        root = self.root(uri)
        self.heed_logs()
        from omnigraph.engine.graph import open_graph

        with root.lock():
            with root.opening():
                graph = open_graph(root.uri, branch=_branch(root), actor=self.actor)
            self.echo(graph.uri)
            yield graph

    def echo(self, target: str) -> None:
        self.note(f"→ {target}")

    def send(self, write: Callable[[], _T]) -> _T:
        """Call the engine's write. From here on a failure is no longer "not started"; whether it can have left anything is
        kept too.
        """
        from omnigraph.engine.evidence import watching

        self._sent = True
        with watching() as evidence:
            try:
                return write()
            finally:
                self._staged = self._staged or evidence.staged  # of all that the command sent

    def standalone_root(self, uri: str | None) -> str:
        """The address of a store for a graph that may not exist yet; a default does not count."""
        given = self.addressing(uri)
        check_taken(given, "store")
        if given.store is None and given.uri is None and given.profile is None:
            from omnigraph.cli.errors import UsageRefused

            raise UsageRefused("Name the new graph: omnigraph init URI --schema FILE.")
        target = resolve(given, self.config, os.environ, "store")
        assert isinstance(target, StoreTarget)
        self._root = locate(target)
        return target.uri

    # keys, harm

    def key(self, given: str | None) -> str:
        """The idempotency key of this write: the caller's, or a fresh one."""
        if given is None:
            from omnigraph.ambient import SystemClock, fresh_ulid
            from omnigraph.engine.writing.replay import FreshKey

            given = FreshKey(fresh_ulid(SystemClock()))
        self._key = given
        return given

    def consent(
        self,
        deed: str,
        *,
        even_locally: bool = False,
        uri: str | None = None,
        detail: Callable[[], str] = str,
    ) -> None:
        """Ask before harm (interfaces.md 12.5). Raises ConsentRequired if nobody can be asked, Declined.

        `deed` is a sentence without its end that says what will be done. `detail` adds to the deed what only the graph knows; it is called when somebody will be asked, and not before.
        """
        if self.yes or (not even_locally and self.root(uri).local):
            return
        if self.json or not terminal.can_ask():
            raise ConsentRequired(f"{deed}. Consent to it with --yes.")
        terminal.say(f"{shown_text(deed + detail())}. Go ahead? [y/N] ", end="")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Declined

    @property
    def progressed(self) -> Progressed:
        return Progressed(self.writes, self._sent, self._key, self._staged)

    @property
    def environ(self) -> Mapping[str, str]:
        return os.environ


class _Told:
    """A logger whose records are lines on stderr."""

    def msg(self, message: str) -> None:
        terminal.say(message)

    debug = info = warning = error = critical = msg


def _branch(root: Root) -> str:
    return "main" if root.branch is None else root.branch  # an empty name is refused by the engine, it is not main


def _log_line(logger: object, method: str, event: MutableMapping[str, Any]) -> str:
    """One record as a note for people: `warning: something (name=value)`."""
    level, text = event.pop("level", method), event.pop("event", "")
    fields = ", ".join(f"{name}={value!r}" for name, value in event.items())
    return shown_text(f"{level}: {text}" + (f" ({fields})" if fields else ""))
