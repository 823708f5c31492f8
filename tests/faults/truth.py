"""What storage holds, read without the engine, and whether it is what the writers' answers say (storage.md 9).

Every rule that does not depend on a writer's answer is here: the chain has no gap, each version names the bytes of the one
before it, ids are where they say they are and stand once, every pin opens, counts equal contents, and each state is what
a replay of the labels on the model gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from faults.oracle import Deed, Model, Picture, picture
from omnigraph.engine.schemas import SchemaStore
from omnigraph.manifest.codec import digest, from_bytes
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.keys import MANIFESTS, folder_branch, parse_version_key
from omnigraph.manifest.model import Commit, Manifest, TablePin
from omnigraph.store.base import Store
from omnigraph.tables.store import TableStore

ENDS = {"__src": "from", "__dst": "to"}


class Violation(AssertionError):
    """An invariant of the storage chapter does not hold."""


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Violation(otherwise)


def label_of(commit: Commit) -> str:
    """Which write of a run a commit is: an optimize takes no message, so that its actor says it."""
    return (commit.actor if commit.kind == "optimize" else commit.message) or ""


@dataclass(frozen=True)
class Version:
    manifest: Manifest
    sha256: str

    @property
    def name(self) -> str:
        return f"{self.manifest.branch}@{self.manifest.version}"


@lru_cache(maxsize=4_096)
def _decoded(data: bytes, branch: str, version: int) -> Version:
    return Version(from_bytes(data, branch=branch, version=version), digest(data))


@dataclass
class Held:
    """The chains by branch, oldest version first, those that clean-up removed included; and what is linked from nowhere."""

    chains: dict[str, list[Version]] = field(default_factory=dict[str, list[Version]])
    strays: list[Version] = field(default_factory=list[Version])
    removed: set[str] = field(default_factory=set[str])

    def head(self, branch: str) -> Version | None:
        chain = self.chains.get(branch)
        return None if chain is None else chain[-1]

    def live(self) -> list[Version]:
        return [chain[-1] for chain in self.chains.values() if chain[-1].manifest.state == "active"]

    def commits(self) -> Iterator[Commit]:
        for chain in self.chains.values():
            for version in chain:
                yield from version.manifest.commits

    def labels(self) -> Counter[str]:
        """How often each label is in the chains."""
        return Counter(map(label_of, self.commits()))

    def named(self, commit_id: str | None) -> Commit | None:
        return next((commit for commit in self.commits() if str(commit.id) == commit_id), None)

    def bare(self) -> list[Version]:
        """Versions that publish no write: branches that were made or deleted, and the beginning."""
        return [
            version
            for chain in self.chains.values()
            for version in chain
            if not version.manifest.commits or version.manifest.commits[0].kind == "genesis"
        ]

    def shown(self) -> str:
        lines: list[str] = []
        for branch, chain in sorted(self.chains.items()):
            for version in chain:
                lines.append(f"  {_shown(version)}" + (" REMOVED BY CLEAN-UP" if version.name in self.removed else ""))
            lines.append(f"  ({branch}: {len(chain)} versions)")
        lines += [f"  STRAY {_shown(version)}" for version in self.strays]
        return "\n".join(lines)


def _shown(version: Version) -> str:
    manifest = version.manifest
    base = "-" if manifest.base is None else f"{manifest.base.version}:{manifest.base.sha256[:8]}"
    commits = ", ".join(f"{c.id} {c.kind} '{c.message or ''}' by {c.actor}" for c in manifest.commits)
    types = " ".join(f"{entry.name}={entry.rows}" for entry in manifest.types.values())
    return (
        f"{version.name} {version.sha256[:8]} on {base} life {manifest.life} {manifest.state}"
        f" nonce {manifest.nonce[:8]} [{commits}] {types}"
    )


def held(store: Store, removed: Mapping[str, bytes] | None = None, seen: dict[str, bytes] | None = None) -> Held:
    """Read all versions and check that they are chains. Raises Violation.

    `seen`: what was read before, and is now, by key; it is not read again if there are still as many bytes.
    """
    removed = removed or {}
    seen = {} if seen is None else seen
    objects: dict[str, dict[int, Version]] = {}
    found = Held()
    keys: dict[str, bytes] = {}
    for info in store.list(MANIFESTS):
        known = seen.get(info.key)
        if known is None or len(known) != info.size or info.key in removed:
            known = seen[info.key] = store.read(info.key).data
        keys[info.key] = known
    strays = {key: data for key, data in keys.items() if key in removed and removed[key] != data}
    for key, data in {**keys, **removed}.items():
        parsed = parse_version_key(key)
        if parsed is None:
            continue
        branch = folder_branch(parsed[0])
        require(branch is not None, f"{key} belongs to no branch")
        version = _decoded(data, branch or "", parsed[1])
        objects.setdefault(branch or "", {})[parsed[1]] = version
        if key in removed:
            found.removed.add(version.name)
    for branch, versions in objects.items():
        found.chains[branch] = _chain(branch, versions)
    for key, data in strays.items():
        parsed = parse_version_key(key)
        assert parsed is not None
        found.strays.append(_decoded(data, folder_branch(parsed[0]) or "", parsed[1]))
    every = Counter(str(commit.id) for commit in found.commits())
    require(max(every.values(), default=0) <= 1, f"a commit stands twice: {every.most_common(1)}")
    return found


def _chain(branch: str, versions: dict[int, Version]) -> list[Version]:
    chain: list[Version] = []
    expected: str | None = None
    for number in range(max(versions), 0, -1):
        version = versions.get(number)
        require(version is not None, f"version {number} of '{branch}' is missing")
        assert version is not None
        require(expected in (None, version.sha256), f"{version.name} is not what the next version follows")
        base = version.manifest.base
        require((base is None) == (number == 1), f"{version.name} has a wrong base")
        require(base is None or base.version == number - 1, f"{version.name} does not follow the version before it")
        for commit in version.manifest.commits:
            placed = (commit.id.branch, commit.id.version) == (branch, number)
            require(placed, f"commit {commit.id} stands in {version.name}")
        expected = None if base is None else base.sha256
        chain.append(version)
    return chain[::-1]


# --- states


class States:
    """What each commit and version should hold, by replay. `known` is shared by runs that begin from the same root."""

    def __init__(self, found: Held, deeds: Mapping[str, Deed], known: dict[CommitId, Model]) -> None:
        self._deeds = deeds
        self._known = known
        self._commits = {commit.id: commit for commit in found.commits()}
        self._own: dict[CommitId, Model] = {}

    def after(self, commit_id: CommitId) -> Model:
        """The state right after a commit."""
        missing: list[Commit] = []
        state: Model | None = None
        while state is None:
            state = self._known.get(commit_id) or self._own.get(commit_id)
            if state is not None:
                break
            commit = self._commits.get(commit_id)
            require(commit is not None, f"commit {commit_id} is a parent and in no chain")
            assert commit is not None
            missing.append(commit)
            if not commit.parents:
                state = Model(rows={})
                missing.pop()
                self._own[commit.id] = state
                break
            commit_id = commit.parents[1] if commit.kind == "merge" else commit.parents[0]
        for commit in reversed(missing):
            state = self._next(commit, state)
            self._own[commit.id] = state
        return state

    def _next(self, commit: Commit, before: Model) -> Model:
        if commit.kind == "merge":
            return before
        label = label_of(commit)
        deed = self._deeds.get(label)
        require(deed is not None, f"nobody asked for commit {commit.id} ('{label}')")
        assert deed is not None
        after = deed(before)
        if commit.kind != "schema":
            self._check_counts(commit, before, after)
        return after

    @staticmethod
    def _check_counts(commit: Commit, before: Model, after: Model) -> None:
        said = {
            commit.names.get(type_id, type_id).partition(":")[2]: counts.inserted - counts.deleted
            for type_id, counts in commit.counts.items()
        }
        was, now = before.count(), after.count()
        for name in {*was, *now, *said}:
            change = now.get(name, 0) - was.get(name, 0)
            require(said.get(name, 0) == change, f"{commit.id} says {name} {said.get(name, 0):+}, and it is {change:+}")

    def of_chain(self, chain: Iterable[Version]) -> list[Model]:
        """The state of each version of a branch, oldest first."""
        states: list[Model] = []
        last: Model | None = None
        for version in chain:
            last = self.of(version, last)
            states.append(last)
        return states

    def of(self, version: Version, before: Model | None) -> Model:
        """The state of a version; `before` is that of the version it follows."""
        manifest = version.manifest
        if manifest.commits:
            return self.after(manifest.commits[-1].id)
        if manifest.state == "deleted":
            require(before is not None, f"{version.name} deletes what never was")
            assert before is not None
            return before
        require(manifest.forked_from is not None, f"{version.name} begins from nothing")
        assert manifest.forked_from is not None
        return self.after(manifest.forked_from)


def check_parents(found: Held) -> None:
    """Commits are chained to the one before them, in their group, their branch, or where the branch was forked."""
    for chain in found.chains.values():
        last: CommitId | None = None
        for version in chain:
            manifest = version.manifest
            if manifest.life == manifest.version and manifest.forked_from is not None:
                last = manifest.forked_from
            for commit in manifest.commits:
                require(
                    commit.parents[:1] == (() if last is None else (last,)),
                    f"{commit.id} follows {commit.parents[:1]}, and before it is {last}",
                )
                last = commit.id
            require(manifest.head_commit.id == last, f"the log of {version.name} does not end with its last commit")


# --- contents


Rows = list[dict[str, Any]]


class Contents:
    """Reads rows at pins, with caches of its own for this one look: what was removed meanwhile is missed.

    `unharmed` has the rows of pins whose files are known to stand as they did when they were read; those of `lasting`
    are added to it.
    """

    def __init__(
        self,
        store: Store,
        tables: TableStore,
        unharmed: dict[TablePin, Rows] | None = None,
        lasting: Collection[TablePin] = (),
    ) -> None:
        self._store = store
        self._tables = tables
        self._schemas = SchemaStore(store)
        self._opened: dict[TablePin, int] = {}
        self._unharmed = {} if unharmed is None else unharmed
        self._lasting = lasting

    def source(self, manifest: Manifest) -> str:
        return self._schemas.source(manifest.schema)

    def check_pins(self, version: Version) -> None:
        """Every pin opens and has as many rows as the manifest says; every type is one of the schema's."""
        catalog = self._schemas.catalog(version.manifest.schema)
        for type_id, entry in version.manifest.types.items():
            entity = catalog.by_id(type_id)
            require(
                entity is not None and entity.name == entry.name,
                f"{version.name} has a type '{entry.name}' of no schema",
            )
            if entry.pin is None:
                require(entry.rows == 0, f"{version.name} counts {entry.rows} rows of {entry.name} and pins none")
                continue
            rows = self._opened.get(entry.pin)
            if rows is None:
                rows = self._opened[entry.pin] = self._tables.open(entry.pin).rows
            require(rows == entry.rows, f"{version.name}: {entry.name} has {rows} rows, and {entry.rows} are counted")
        for commit in version.manifest.commits:
            if commit.kind == "optimize":
                self._check_indexes(version, commit)

    def _check_indexes(self, version: Version, commit: Commit) -> None:
        """What was built stands in storage, and the table names it."""
        for type_id in commit.touched:
            pin = version.manifest.types[type_id].pin
            require(pin is not None, f"{version.name} indexes a table that is none")
            assert pin is not None
            found = [
                each for index in self._tables.open(pin).search_indexes.described.values() for each in index.segments
            ]
            require(bool(found), f"{version.name}: nothing of what {commit.id} built is in the table")
            for segment in found:
                files = list(self._store.list(f"{pin.path}/_indices/{segment.uuid}"))
                require(bool(files), f"{version.name}: an index of {commit.id} has no files")

    def picture(self, version: Version) -> Picture:
        """All rows of a version. Raises Violation if two have one id, or an edge lacks an end."""
        manifest = version.manifest
        catalog = self._schemas.catalog(manifest.schema)
        rows: dict[str, list[dict[str, Any]]] = {}
        ids: dict[str, set[str]] = {}
        ends: list[tuple[str, str, str]] = []
        for type_id, entry in manifest.types.items():
            entity = catalog.by_id(type_id)
            if entity is None or entry.pin is None:
                continue
            names = {p.column: p.name for p in entity.properties}
            read = self._rows(entry.pin, (*ENDS, *names))
            every = Counter(row["__id"] for row in read)
            twice = [each for each, times in every.items() if times > 1]
            require(not twice, f"{version.name}: {entry.name} {twice} stand twice")
            ids[entry.name] = set(every)
            rows[entry.name] = [
                {({**ENDS, **names})[name]: row[name] for name in (*ENDS, *names) if name in row} for row in read
            ]
            if entry.kind == "edge":
                edge = catalog.edges[entry.name]
                ends += [(entry.name, edge.source, row["__src"]) for row in read]
                ends += [(entry.name, edge.target, row["__dst"]) for row in read]
        for edge_name, node_name, node_id in ends:
            found = node_id in ids.get(node_name, set())
            require(
                found, f"{version.name}: an edge of {edge_name} ends at {node_name} '{node_id}', which is not there"
            )
        return picture(rows)

    def _rows(self, pin: TablePin, names: Iterable[str]) -> Rows:
        """Of the columns of these names, if they are there, and the ids; of others too, perhaps."""
        rows = self._unharmed.get(pin)
        if rows is None:
            table = self._tables.open(pin)
            lasts = pin in self._lasting
            wanted = set(names) | {"__id"}
            rows = table.read([name for name in table.column_names if lasts or name in wanted]).to_pylist()
            if lasts:
                self._unharmed[pin] = rows
        return rows


def judge(
    found: Held,
    states: States,
    contents: Contents,
    *,
    known: set[tuple[str, int]] | None = None,
    branches: set[str] | None = None,
) -> None:
    """Every version pins what it says, and every live head holds the rows that its commits say.

    `known`: versions by branch and number that were judged before; the rows of a head among them are read again only if
    its branch is one of `branches`.
    """
    known = known or set()
    for branch, chain in found.chains.items():
        last: Model | None = None
        for version in chain:
            last = states.of(version, last)
            if (branch, version.manifest.version) not in known and version.name not in found.removed:
                contents.check_pins(version)
        head = chain[-1]
        changed = (branch, head.manifest.version) not in known
        if head.manifest.state == "active" and (changed or branch in (branches or ())):
            assert last is not None
            _check_rows(contents, head, last)


def _check_rows(contents: Contents, head: Version, expected: Model) -> None:
    require(contents.source(head.manifest) == expected.schema, f"{head.name} has another schema than was applied")
    is_, should = contents.picture(head), expected.picture()
    if is_ != should:
        lines = [
            f"    {name}: held {is_.get(name, ())}, expected {should.get(name, ())}"
            for name in sorted({*is_, *should})
            if is_.get(name, ()) != should.get(name, ())
        ]
        raise Violation("\n".join([f"{head.name} holds other rows than its commits say:", *lines]))
