"""OmniGraph and LadybugDB with the social graph in them: loaded once onto the disk, opened by whoever asks."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.graphs import environment
from benchmarks.social import LADYBUG_SCHEMA, SCHEMA, SocialGraph
from benchmarks.social_questions import Question, questions
from omnigraph.engine.graph import Graph
from omnigraph.engine.opening import init_core, open_core
from omnigraph.engine.reading.context import Context

_LIMITS = {
    "OMNIGRAPH_WRITE_ENTITIES": "100000000",
    "OMNIGRAPH_WRITE_BYTES": str(1 << 34),
}  # a load is one commit a type
_LADYBUG_BYTES = 4 << 30  # of pages; the rest of what it needs comes on top

Params = Mapping[str, Any]


class Engine(Protocol):
    """Who answers."""

    def ask(self, question: Question) -> pa.Table: ...


class SocialOmnigraph:
    """The graph in a folder, opened as a server does, which owns the writes."""

    def __init__(self, folder: Path, params: Params) -> None:
        self.graph = Graph(Context(open_core(str(folder), owner=True)))
        self.params = params

    @staticmethod
    def load(folder: Path, social: SocialGraph) -> None:
        """One Arrow table a type, fsynced."""
        with environment(_LIMITS):
            graph = Graph(Context(init_core(str(folder), SCHEMA, owner=True)))
            graph.load(social.cities, mode="append", type="City", progress=False)
            graph.load(social.people, mode="append", type="Person", progress=False)
            for name, edges in {"Follows": social.follows, "LivesIn": social.lives_in}.items():
                graph.load(edges.rename_columns(["@src", "@dst"]), mode="append", type=name, progress=False)

    def ask(self, question: Question) -> pa.Table:
        return self.graph.query(question.gq, chosen(self.params, question)).table


class SocialLadybug:
    """A database file."""

    def __init__(self, file: Path, params: Params, *, read_only: bool = True) -> None:
        import ladybug

        database = ladybug.Database(str(file), buffer_pool_size=_LADYBUG_BYTES, read_only=read_only)
        self._connection = ladybug.Connection(database)
        self._params = params

    @staticmethod
    def load(file: Path, social: SocialGraph) -> None:
        """One Arrow table a type, and a checkpoint, so that a reader finds everything in its place."""
        database = SocialLadybug(file, {}, read_only=False)
        for statement in LADYBUG_SCHEMA:
            database._run(statement, {})
        tables = {
            "City": social.cities,
            "Person": social.people,
            "Follows": social.follows,
            "LivesIn": social.lives_in,
        }
        for name, rows in tables.items():
            database._run(f"COPY {name} FROM $rows", {"rows": rows})
        database._run("CHECKPOINT", {})
        database._connection.close()

    def ask(self, question: Question) -> pa.Table:
        return self._run(question.cypher, chosen(self._params, question)).get_as_arrow()

    def _run(self, statement: str, params: Params) -> Any:
        return cast(Any, self._connection.execute(statement, dict(params)))


def chosen(params: Params, question: Question) -> Params:
    """Those that a question has."""
    return {} if question.begin == "all" else {question.begin: params[question.begin]}


def same_answer(ours: pa.Table, theirs: pa.Table, *, ordered: bool) -> bool:
    """Whether both hold the same rows under the same names: in the same order if that is asked, floats to 12 digits."""
    names = ours.column_names
    if theirs.column_names != names or ours.num_rows != theirs.num_rows:
        return False
    one, other = (_plain(table) for table in (ours, theirs))
    if not ordered:
        keys = [(name, "ascending") for name in names if not pa.types.is_floating(one.column(name).type)]
        one, other = (table.sort_by(keys) for table in (one, other))
    return all(_same_column(one.column(name), other.column(name)) for name in names)


def _plain(table: pa.Table) -> pa.Table:
    """Integers of one width, strings of one kind."""
    columns: dict[str, pa.ChunkedArray] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_integer(column.type):
            column = column.cast(pa.int64())
        elif pa.types.is_floating(column.type):
            column = column.cast(pa.float64())
        elif not pa.types.is_boolean(column.type):
            column = column.cast(pa.large_string())
        columns[name] = column
    return pa.table(columns)


def _same_column(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    if not pa.types.is_floating(one.type):
        return one.combine_chunks().equals(other.combine_chunks())
    apart = pc.abs(pc.subtract(one, other))
    near = pc.less_equal(apart, pc.multiply(pc.abs(one), 1e-12))
    return one.null_count == other.null_count == 0 and (len(one) == 0 or pc.all(near).as_py())


def peak_bytes(kind: type[SocialOmnigraph] | type[SocialLadybug], where: Path, params: Params) -> int:
    """How much memory a new process takes at most to open the engine and ask every question once; modules do not count."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
        return alone.submit(_peak, kind, where, params).result()


def _peak(kind: type[SocialOmnigraph] | type[SocialLadybug], where: Path, params: Params) -> int:
    before = _greatest_memory()
    engine: Engine = kind(where, params)
    for question in questions():
        engine.ask(question)
    return _greatest_memory() - before


def _greatest_memory() -> int:
    """Of this process so far, in bytes. Linux says it by itself; elsewhere a child may be charged for its parent's."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lines = [line.split() for line in status.read_text().splitlines()]
    return next(int(words[1]) for words in lines if words[0] == "VmHWM:") * 1024
