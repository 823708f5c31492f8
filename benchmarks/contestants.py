"""Three ways to the pairs at a distance: OmniGraph, plain GraphBLAS over numpy columns, LadybugDB. Same graph, same rows.

Each answers `pairs(steps)`: for every seed a and every b whose shortest distance from a is exactly `steps`, the key of a,
the key of b and b's number of words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from graphblas import Matrix, semiring
from graphblas import binary as gb_binary

from omnigraph.engine.graph import Graph

COLUMNS = ("seed", "key", "words")


@dataclass(frozen=True, slots=True)
class GraphColumns:
    """Nodes and the edges of each type, as columns: what every contestant is built from."""

    keys: pa.Array
    words: pa.Array
    edges: dict[str, pa.Table]  # columns src and dst, keys

    @classmethod
    def of(cls, stored: dict[str, pa.Table], word_column: str) -> GraphColumns:
        """From the stored tables of a WordNet graph: the edges between synsets."""
        synsets = stored["Synset"]
        edges = {
            name: pa.table({"src": table.column("__src"), "dst": table.column("__dst")})
            for name, table in sorted(stored.items())
            if "__src" in table.column_names and name != "Sense"
        }
        keys, words = (synsets.column(name).combine_chunks() for name in ("__id", word_column))
        return cls(keys, words, edges)

    def chosen(self, relations: Sequence[str]) -> dict[str, pa.Table]:
        return {name: self.edges[name] for name in relations}


class Omnigraph:
    """By query, as a user would ask. `relations` are joined by `|` in the hop."""

    def __init__(self, graph: Graph, relations: Sequence[str], seeds: pa.Array) -> None:
        words = [name[0].lower() + name[1:] for name in relations]
        self._hop = words[0] if len(words) == 1 else f"({' | '.join(words)})"
        self._graph = graph
        self._seeds = seeds.to_pylist()

    def pairs(self, steps: int) -> pa.Table:
        query = f"""query reached($seeds: [String]) {{
          match {{ $a: Synset  $a.key in $seeds  $a {self._hop}{{{steps},{steps}}} $b }}
          return {{ $a.key as seed, $b.key as key, $b.word_count as words }}
        }}"""
        return self._graph.query(query, seeds=self._seeds).table


class PlainGraphBLAS:
    """The adjacency as one Boolean matrix, the columns as numpy arrays, seeds given as row numbers: the least that it takes."""

    def __init__(self, columns: GraphColumns, relations: Sequence[str], seeds: pa.Array) -> None:
        tables = list(columns.chosen(relations).values())
        src = pa.chunked_array([chunk for table in tables for chunk in table.column("src").chunks])
        dst = pa.chunked_array([chunk for table in tables for chunk in table.column("dst").chunks])
        size = len(columns.keys)
        self._matrix = Matrix.from_coo(
            _numbers(src, columns.keys), _numbers(dst, columns.keys), True, dtype=bool, nrows=size, ncols=size
        )
        self._matrix.wait()
        self._seeds = _numbers(pa.chunked_array([seeds]), columns.keys)
        self._keys = np.array(columns.keys.to_pylist(), dtype="S")
        self._words = columns.words.to_numpy(zero_copy_only=False)

    def arrays(self, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The three columns."""
        count, size = len(self._seeds), len(self._keys)
        frontier = Matrix.from_coo(np.arange(count), self._seeds, True, dtype=bool, nrows=count, ncols=size)
        seen = frontier.dup()
        for distance in range(1, steps + 1):
            reached = Matrix(bool, count, size)
            product = frontier.mxm(self._matrix, semiring.any_pair)
            if distance == 1:  # a step from a node to itself is a step
                reached.update(product)
            else:
                reached(~seen.S).update(product)
            if distance < steps:
                seen(gb_binary.any).update(reached)
            frontier = reached
        rows, found, _ = frontier.to_coo(values=False)
        return self._keys[self._seeds[rows]], self._keys[found], self._words[found]

    def pairs(self, steps: int) -> pa.Table:
        seed, key, words = self.arrays(steps)
        return pa.table({"seed": pa.array(seed).cast("string"), "key": pa.array(key).cast("string"), "words": words})


class Ladybug:
    """LadybugDB in memory, asked in Cypher. Two spellings give these pairs; `steps` steps written out, or a shortest path."""

    def __init__(self, columns: GraphColumns, relations: Sequence[str], seeds: pa.Array) -> None:
        import ladybug

        self._connection = ladybug.Connection(ladybug.Database(":memory:"))
        self._run("CREATE NODE TABLE Synset(key STRING PRIMARY KEY, words INT32)")
        nodes = pa.table({"key": columns.keys, "words": columns.words})
        self._copy("Synset", nodes)
        for name, table in columns.chosen(relations).items():
            self._run(f"CREATE REL TABLE {name}(FROM Synset TO Synset)")
            self._copy(name, table)
        self._label = "|".join(relations)
        self._seeds = seeds.to_pylist()

    def written_out(self, steps: int) -> pa.Table:
        """Every step a pattern of its own; what is nearer is excluded by subqueries."""
        hop = f"-[:{self._label}]->"
        between = "".join(f"{hop}(m{n}:Synset)" for n in range(1, steps))
        nearer = "".join(
            f" AND NOT EXISTS {{ MATCH (a){hop}{''.join(f'(k{n}:Synset){hop}' for n in range(1, less))}(b) }}"
            for less in range(1, steps)
        )
        farther = f" WHERE a.key <> b.key{nearer}" if steps > 1 else ""
        return self._asked(
            "UNWIND $seeds AS seed MATCH (a:Synset {key: seed}) "  # four times faster than `a.key IN $seeds`
            f"MATCH (a){between}{hop}(b:Synset){farther} "
            "RETURN DISTINCT a.key AS seed, b.key AS key, b.words AS words"
        )

    def shortest(self, steps: int) -> pa.Table:
        """A shortest path of that length. It never leads from a node to itself, so this is for two steps or more.

        Seeds given by UNWIND make it ten times slower.
        """
        return self._asked(
            f"MATCH p = (a:Synset)-[:{self._label}* SHORTEST 1..{steps}]->(b:Synset) "
            f"WHERE a.key IN $seeds AND length(p) = {steps} RETURN a.key AS seed, b.key AS key, b.words AS words"
        )

    def _asked(self, query: str) -> pa.Table:
        return self._run(query, {"seeds": self._seeds}).get_as_arrow()

    def _copy(self, name: str, rows: pa.Table) -> None:
        self._run(f"COPY {name} FROM $rows", {"rows": rows})

    def _run(self, query: str, parameters: dict[str, Any] | None = None) -> Any:
        return cast(Any, self._connection.execute(query, parameters or {}))


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Whether two answers hold the same rows, in whatever order."""
    order = [("seed", "ascending"), ("key", "ascending")]
    schema = pa.schema([("seed", pa.string()), ("key", pa.string()), ("words", pa.int64())])
    left, right = (
        pa.table({name: table.column(name) for name in COLUMNS}).cast(schema).sort_by(order).combine_chunks()
        for table in (one, other)
    )
    return left.equals(right)


def _numbers(values: pa.ChunkedArray, keys: pa.Array) -> np.ndarray:
    return pc.index_in(values, value_set=keys).to_numpy().astype(np.uint64)
