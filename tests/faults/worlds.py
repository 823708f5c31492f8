"""The roots that schedules begin from: each is made once for a process and copied by hard links, since no file changes.

`plain`  main with four commits; `side` one commit ahead of it; `spare`, a branch without commits; `gone`, deleted
`empty`  nothing at all
`long`   main with 191 commits, so that the next one moves the oldest 128 of its log into a segment
`longer` one commit more: an old key stands in a segment
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from faults.oracle import SCHEMA, Deed, Model, also, only, put
from omnigraph.engine.graph import Graph
from omnigraph.engine.opening import init_core
from omnigraph.engine.reading.context import Context
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.model import TablePin
from support.clocks import SteppingClock

BEGAN_US = 2_000_000_000_000_000
LATER_US = BEGAN_US + 3_600_000_000
"""When a run begins: an hour after its root was made."""
OLD_KEY = "an-old-key"
NOTE = "query note($m: String) { insert Note { text: $m } }"


@dataclass(frozen=True, eq=False)
class World:
    """A root, and what is known of it. What is filled by whoever looks first, for those that come after: `states` by
    replay, `manifests` by key, `rows` by pin.
    """

    root: str
    deeds: dict[str, Deed]
    commits: dict[str, str]  # label -> commit id
    states: dict[CommitId, Model] = field(default_factory=dict[CommitId, Model])
    manifests: dict[str, bytes] = field(default_factory=dict[str, bytes])
    rows: dict[TablePin, list[dict[str, Any]]] = field(default_factory=dict[TablePin, "list[dict[str, Any]]"])


class Making:
    """A graph to which labelled writes are made without faults."""

    def __init__(self, root: str) -> None:
        clock = SteppingClock(now_us=BEGAN_US)
        self.graph = Graph(Context(init_core(root, SCHEMA, clock=clock), actor="maker"))
        self.deeds: dict[str, Deed] = {}
        self.commits: dict[str, str] = {}
        self._root = root

    def write(self, label: str, text: str, deed: Deed, branch: str = "main", key: str | None = None) -> None:
        done = self.graph.mutate(
            text, {"m": label} if "$m" in text else {}, branch=branch, message=label, idempotency_key=key
        )
        self._note(label, deed, done)

    def only_note(self, text: str) -> None:
        """One note in place of all, so that a long log leaves a table of one fragment."""
        rows = [{"type": "Note", "data": {"text": text}}]
        done = self.graph.load(rows, mode="overwrite", message=text, progress=False)
        self._note(text, only("Note", {"text": text}), done)

    def _note(self, label: str, deed: Deed, done: Any) -> None:
        assert done.commit is not None
        self.deeds[label] = deed
        self.commits[label] = done.commit.graph_commit_id

    def made(self) -> World:
        self.graph.close()
        return World(self._root, self.deeds, self.commits)


def _begun(root: str) -> Making:
    making = Making(root)
    ports = [put("Port", code=code) for code in "ABC"]
    inserts = " ".join(f'insert Port {{ code: "{code}" }}' for code in "ABC")
    making.write("ports", f"query m() {{ {inserts} }}", also(*ports))
    ferries = [put("Ferry", **{"from": a, "to": b, "mark": a + b}) for a, b in ("AB", "BC")]
    inserts = " ".join(f'insert Ferry {{ from: "{a}", to: "{b}", mark: "{a + b}" }}' for a, b in ("AB", "BC"))
    making.write(
        "ferries", f'query m() {{ {inserts} insert Note {{ text: "n" }} }}', also(*ferries, put("Note", text="n"))
    )
    making.write("keyed", NOTE, put("Note", text="keyed"), key=OLD_KEY)
    return making


def _plain(root: str) -> World:
    making = _begun(root)
    branches = making.graph.branches
    branches.create("side")
    insert = "query m($m: String) { insert Port { code: $m, mark: $m } }"
    making.write("aside", insert, put("Port", code="aside", mark="aside"), branch="side")
    branches.create("spare")
    branches.create("gone")
    making.write("lost", NOTE, put("Note", text="lost"), branch="gone")
    branches.delete("gone")
    return making.made()


def _long(root: str, commits: int) -> World:
    making = _begun(root)
    for number in range(commits - 4):
        making.only_note(f"n{number}")
    return making.made()


def _empty(root: str) -> World:
    os.makedirs(root)
    return World(root, {}, {})


_MAKERS: dict[str, Callable[[str], World]] = {
    "empty": _empty,
    "plain": _plain,
    "long": lambda root: _long(root, 191),
    "longer": lambda root: _long(root, 192),
}


@cache
def world(name: str, folder: str) -> World:
    """The root of this name, made below `folder` when it is first asked for by a process."""
    return _MAKERS[name](os.path.join(folder, f"world-{name}-{os.getpid()}"))


def copied(source: str, target: str) -> str:
    """A copy that shares every file. Graph roots allow it: what stands there is never changed, only added to."""
    folders, files = _files(source)
    for folder in folders:
        os.mkdir(f"{target}{folder}")
    for name, _, _ in files:
        os.link(f"{source}{name}", f"{target}{name}")
    return target


def harmed(source: str, target: str) -> list[str]:
    """The files of tables that a copy no longer has, or has otherwise, than what it was made from."""
    of_tables = (each for each in _files(source)[1] if not each[0].startswith("/__"))
    return [name for name, inode, changed in of_tables if _seen(f"{target}{name}") != (inode, changed)]


def _seen(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return 0, 0
    return found.st_ino, found.st_mtime_ns


@cache
def _files(source: str) -> tuple[list[str], list[tuple[str, int, int]]]:
    """The folders of a root, and its files with what tells one that was changed."""
    folders: list[str] = []
    files: list[tuple[str, int, int]] = []
    for folder, _, names in os.walk(source):
        relative = folder[len(source) :]
        folders.append(relative)
        files += [
            (f"{relative}/{name}", *_seen(os.path.join(folder, name)))
            for name in sorted(names)
            if not name.startswith(".lane")
        ]
    return folders, files
