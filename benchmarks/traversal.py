"""One to three hops from many seeds: OmniGraph beside plain GraphBLAS and LadybugDB, in turns, on the same graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.contestants import GraphColumns, Ladybug, Omnigraph, PlainGraphBLAS, same_rows
from benchmarks.load_ratio import fresh_graph, stored_columns
from benchmarks.report import Row, Section, Verdict, judged
from benchmarks.timing import Times, in_turns, ratio, shown
from benchmarks.wordnet_data import WITHOUT, WordNet

AHEAD_AT_STEPS = 2
_SEED = 20_26


@dataclass(frozen=True, slots=True)
class HopTimes:
    relations: str
    steps: int
    rows: int
    ours: Times
    plain: Times
    ladybug: Times
    ladybug_way: str


@dataclass(frozen=True, slots=True)
class Traversal:
    data: WordNet
    seeds: int
    edges: dict[str, int]
    hops: tuple[HopTimes, ...]


class AnswersDiffer(Exception):
    """Two contestants gave different rows, so that their times say nothing."""


def measure_traversal(data: WordNet, scratch: Path, *, seeds: int, steps: Sequence[int], rounds: int) -> Traversal:
    """Hops over the largest relation alone and over all relations. Raises AnswersDiffer."""
    graph = fresh_graph(scratch / "traversal")
    graph.load(data.path, mode="append", progress=False)
    of = graph.core.head_snapshot("main").catalog.nodes["Synset"].property("word_count")
    assert of is not None
    columns = GraphColumns.of(stored_columns(graph), of.column)
    drawn = np.random.default_rng(_SEED).choice(len(columns.keys), min(seeds, len(columns.keys)), replace=False)
    asked = columns.keys.take(pa.array(np.sort(drawn)))
    selections = {"Hypernym": ["Hypernym"], f"all {len(columns.edges)} relations": list(columns.edges)}
    hops: list[HopTimes] = []
    for name, relations in selections.items():
        ours = Omnigraph(graph, relations, asked)
        plain = PlainGraphBLAS(columns, relations, asked)
        ladybug = Ladybug(columns, relations, asked)
        hops += [_hop(name, each, ours, plain, ladybug, rounds) for each in steps]
    edges = {name: sum(len(columns.edges[r]) for r in relations) for name, relations in selections.items()}
    return Traversal(data, len(asked), edges, tuple(hops))


def _hop(name: str, steps: int, ours: Omnigraph, plain: PlainGraphBLAS, ladybug: Ladybug, rounds: int) -> HopTimes:
    ways: dict[str, Callable[[int], pa.Table]] = {"steps written out": ladybug.written_out}
    if steps > 1:
        ways["shortest path"] = ladybug.shortest
    answer = ours.pairs(steps)
    for other in (plain.pairs, *ways.values()):
        if not same_rows(answer, other(steps)):
            raise AnswersDiffer(f"{name}, {steps} steps")
    quickest = in_turns({way: lambda ask=ask: ask(steps) for way, ask in ways.items()}, rounds=1)
    way = min(quickest, key=lambda each: quickest[each].median)
    times = in_turns(
        {
            "ours": lambda: ours.pairs(steps),
            "plain": lambda: plain.arrays(steps),
            "ladybug": lambda: ways[way](steps),
        },
        rounds=rounds,
    )
    return HopTimes(name, steps, answer.num_rows, times["ours"], times["plain"], times["ladybug"], way)


def traversal_section(found: Traversal) -> Section:
    def row(hop: HopTimes) -> Row:
        behind, ahead = ratio(hop.ours, hop.plain), ratio(hop.ladybug, hop.ours)
        cells = (
            hop.relations, str(hop.steps), f"{hop.rows:,}", shown(hop.ours.median), shown(hop.plain.median),
            shown(hop.ladybug.median), f"{behind:.1f}", f"{ahead:.1f}",
        )  # fmt: skip
        target = hop.steps == AHEAD_AT_STEPS and found.data.whole
        return Row(cells, judged(ahead > 1) if target else Verdict.NONE)

    sizes = ", ".join(f"{name} {count:,} edges" for name, count in found.edges.items())
    notes = [
        "Plain GraphBLAS gets its seeds as row numbers and gives numpy arrays: no parsing, no keys to look up, no plan. "
        "Of LadybugDB the faster of two spellings in Cypher is timed ("
        + "; ".join(f"{h.relations}, {h.steps}: {h.ladybug_way}" for h in found.hops)
        + ")."
    ]
    if not found.data.whole:
        notes.append(WITHOUT)
    return Section(
        "Traversal",
        f"{found.data.name} ({sizes}), directed, from {found.seeds:,} random synsets: all pairs at exactly so many steps, "
        "with three columns (both keys, a number), everything warm. The answers of the three are checked to be the same. "
        f"{len(found.hops[0].ours.seconds)} rounds in turns. The target: two hops from 1,000 seeds ahead of LadybugDB.",
        ("edges", "steps", "rows", "OmniGraph", "plain GraphBLAS", "LadybugDB", "× plain", "× faster than LadybugDB"),
        tuple(map(row, found.hops)),
        tuple(notes),
    )
