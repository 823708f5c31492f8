"""Several `@range` on one property: a value lies in all of them, whichever door it comes through (languages.md 4.4, 5.4)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import ConstraintViolation, InvalidSchema, SchemaChangeRefused

SCHEMA = "node A { key: String @key  x: I32?  @range(x, 0..) @range(x, ..10) @range(x, -5..20) }"


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setenv("OMNIGRAPH_LOCAL_SYNC", "off")
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    graph.mutate('query m() { insert A { key: "a", x: 5 } insert A { key: "b" } }')
    return graph


def record(x: int | None) -> dict[str, Any]:
    return {"type": "A", "data": {"key": "a" if x is None else f"n{x}", "x": x}}


def loading(mode: Any) -> Callable[[Graph, int | None], object]:
    return lambda graph, x: graph.load([record(x)], mode=mode, progress=False)


def frame(x: int | None) -> pa.Table:
    return pa.table({"key": [f"f{x}"], "x": pa.array([x], pa.int64())})


DOORS: dict[str, Callable[[Graph, int | None], object]] = {
    "append": lambda graph, x: graph.load([{"type": "A", "data": {"key": f"n{x}", "x": x}}], mode="append"),
    "merge": loading("merge"),
    "overwrite": loading("overwrite"),
    "frame": lambda graph, x: graph.load(frame(x), type="A", mode="append", progress=False),
    "load that forks": lambda graph, x: graph.load([record(x)], mode="merge", branch=f"b{x}", from_="main"),
    "insert": lambda graph, x: graph.mutate("query m($x: I32?) { insert A { key: $k, x: $x } }".replace("$k", f'"i{x}"'), {"x": x}),
    "insert of an existing key": lambda graph, x: graph.mutate('query m($x: I32?) { insert A { key: "a", x: $x } }', {"x": x}),
    "update": lambda graph, x: graph.mutate('query m($x: I32?) { update A set { x: $x } where key = "a" }', {"x": x}),
    "update of a null": lambda graph, x: graph.mutate('query m($x: I32?) { update A set { x: $x } where key = "b" }', {"x": x}),
}  # fmt: skip


def refusals(write: Callable[[int | None], object]) -> list[str]:
    """Which rule each of some values breaks, by the message's end."""
    found: list[str] = []
    for value in (-6, -1, 0, None, 10, 11, 21):
        try:
            write(value)
        except ConstraintViolation as error:
            code, message = error.details["code"], error.message
            found.append(f"{value}: {code} {message.partition(' lies outside ')[2]}")
    return found


@pytest.mark.parametrize("door", DOORS)
def test_every_range_holds_at_every_door(graph: Graph, door: str) -> None:
    assert refusals(lambda x: DOORS[door](graph, x)) == [
        "-6: W003 @range(x, -5..20)",
        "-1: W003 @range(x, 0..)",
        "11: W003 @range(x, ..10)",
        "21: W003 @range(x, ..10)",
    ]


def test_every_range_goes_with_a_renamed_property(graph: Graph) -> None:
    renamed = 'node A { key: String @key  y: I32? @rename_from("x")  @range(y, ..10) @range(y, -5..20) @range(y, 0..) }'
    assert graph.schema.apply(renamed).applied
    again = omnigraph.open(graph.uri)
    update = 'query m($y: I32?) { update A set { y: $y } where key = "a" }'
    assert [said.replace("y", "x") for said in refusals(lambda y: again.mutate(update, {"y": y}))] == [
        "-6: W003 @range(x, -5..20)",
        "-1: W003 @range(x, 0..)",
        "11: W003 @range(x, ..10)",
        "21: W003 @range(x, ..10)",
    ]


@pytest.mark.parametrize(
    ("rules", "codes"),
    [
        ("@range(x, 0..) @range(x, ..10)", {"OG-CD-201": "@range(x, -5..20) is removed"}),
        (
            "@range(x, 0..) @range(x, ..10) @range(x, -5..20) @range(x, ..30)",
            {"OG-MF-201": "@range(x, ..30) is added to an existing type"},
        ),
        (
            "@range(x, 0..) @range(x, ..11) @range(x, -5..20)",
            {"OG-CD-201": "@range(x, ..10) is removed", "OG-MF-201": "@range(x, ..11) is added to an existing type"},
        ),
    ],
)
def test_one_of_several_ranges_is_neither_added_nor_removed_nor_changed(
    graph: Graph, rules: str, codes: dict[str, str]
) -> None:
    with pytest.raises(SchemaChangeRefused) as caught:
        graph.schema.apply(f"node A {{ key: String @key  x: I32?  {rules} }}")
    assert {step["code"]: step["reason"] for step in caught.value.steps if "code" in step} == codes


def test_a_new_type_brings_all_its_ranges(graph: Graph) -> None:
    graph.schema.apply(SCHEMA + " node B { key: String @key  x: F64? @range(x, 0.5..) @range(x, ..1.5) }")
    insert = 'query m($x: F64) { insert B { key: "b", x: $x } }'
    for value, rule in ((0.25, "@range(x, 0.5..)"), (1.75, "@range(x, ..1.5)")):
        with pytest.raises(ConstraintViolation) as caught:
            graph.mutate(insert, x=value)
        assert caught.value.message.endswith(f": {value} lies outside {rule}")
    graph.mutate(insert, x=1.0)


@pytest.mark.parametrize(
    ("of", "written", "told"),
    [
        ("F32", "0.1..", "0.1.."),
        ("F32", "1e-7..3e22", "1.0e-7..3.0e22"),
        ("F64", "..1e22", "..1.0e22"),
        ("F64", "0.00001..10", "0.00001..10.0"),
        ("U64", "1..18446744073709551615", "1..18446744073709551615"),
    ],
)
def test_the_bounds_of_a_step_are_spelled_at_the_width_of_the_property(
    tmp_path: Path, of: str, written: str, told: str
) -> None:
    graph = omnigraph.init(tmp_path / "g", schema=f"node A {{ x: {of}? @range(x, {written}) }}")
    plan = graph.schema.plan(f"node A {{ x: {of}? }}")
    assert [step["reason"] for step in plan.steps] == [f"@range(x, {told}) is removed"]


@pytest.mark.parametrize(
    ("of", "written", "told"), [("F32", "0.7..0.1", "0.7..0.1"), ("F64", "1e22..0", "1.0e22..0.0")]
)
def test_bounds_that_enclose_nothing_are_told_alike(tmp_path: Path, of: str, written: str, told: str) -> None:
    with pytest.raises(InvalidSchema, match=re.escape(f"nothing lies in {told}")):
        omnigraph.init(tmp_path / "g", schema=f"node A {{ x: {of}? @range(x, {written}) }}")
