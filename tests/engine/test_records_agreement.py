"""The fast reader gives what the exact reader gives, or nothing; and on ordinary records it gives something."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.engine.load.exact import read_exact
from omnigraph.engine.load.fast import read_fast
from omnigraph.engine.load.lines import Group, groups, split
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.lang.schema.compile import compile_schema
from support.records import ODD_TEXTS, lines, odd_records, plain_things, wide
from support.schemas import counter

CATALOG = wide()


def entity_of(group: Group) -> EntityType | None:
    return CATALOG.nodes.get(group.name) if group.word == "type" else CATALOG.edge_by_word(group.name)


def same(left: pa.Table, right: pa.Table) -> bool:
    """Equal values, floats by their bits."""
    if left.schema != right.schema or len(left) != len(right):
        return False
    return [bits(column) for column in left.columns] == [bits(column) for column in right.columns]


def bits(column: pa.ChunkedArray) -> Any:
    return repr(column.to_pylist())


@settings(max_examples=120, deadline=None)
@given(st.lists(odd_records(), min_size=1, max_size=4))
@example(['{"type":"Memo"}', '{"type":"Memo","id":null}'])
@example(['{"type":"Memo","data":null}'])
@example(['{"type":"Memo"} null {"type":"Memo"}'])
@example(['{"type":"Memo"}\rnull {}'])
@example(['{"type":"Memo","data":{"id":null},"i\\u0064":null}'])
@example(['{"type":"Thing","data":', '{"type":"Memo"}}', '{"type":"Memo"}{"type":"Memo"}'])
def test_what_the_fast_reader_takes_the_exact_reader_reads_alike(records: list[str]) -> None:
    found = split("".join(f"{record}\n" for record in records).encode(), 1)
    for group in groups(found.plain):
        if not isinstance(group, Group):
            continue
        entity = entity_of(group)
        if entity is None:
            continue
        fast = read_fast(entity, group.word, group.name, group.lines)
        if fast is None:
            continue
        exact = read_exact(CATALOG, group.lines)
        assert exact.refusal is None
        assert same(exact.tables[entity.id][1], fast)


@settings(max_examples=60, deadline=None)
@given(st.lists(plain_things(), min_size=1, max_size=5))
def test_random_plain_records_are_read_alike(records: list[str]) -> None:
    entity = CATALOG.nodes["Thing"]
    found = split("".join(f"{record}\n" for record in records).encode(), 7).plain
    exact = read_exact(CATALOG, found)
    fast = read_fast(entity, "type", entity.name, found)
    if exact.refusal is None and fast is not None:
        assert same(exact.tables[entity.id][1], fast)
    if exact.refusal is not None:
        assert fast is None


@pytest.mark.parametrize("of", [p.type.spelling() for p in CATALOG.nodes["Thing"].properties])
def test_every_odd_value_of_every_type_is_read_alike(of: str) -> None:
    catalog = compile_schema(f"node One {{ value: {of} }}", mint=counter())
    entity = catalog.nodes["One"]
    taken = 0
    for value in ODD_TEXTS:
        found = split(f'{{"type":"One","data":{{"value":{value}}}}}\n'.encode(), 1).plain
        exact, fast = read_exact(catalog, found), read_fast(entity, "type", entity.name, found)
        if fast is not None:
            assert exact.refusal is None, value
            assert same(exact.tables[entity.id][1], fast), value
        taken += exact.refusal is None
    assert 0 < taken < len(ODD_TEXTS)


@pytest.mark.parametrize(
    "data",
    [
        {"key": "a", "text": 'say "hi"\n', "yes": True, "small": -1, "large": 2**63 - 1, "natural": 0, "huge": 2**64 - 1},
        {"key": "a", "single": 0.1, "double": 1e300, "state": "laid-up", "place": [1, 2.5]},
        {"key": "a", "day": "2024-02-29", "moment": "2024-02-29T01:02:03.5Z"},
        {"key": "a", "day": 19723, "moment": 1704067200000},
        {"key": "a", "large": "9007199254740993", "huge": "18446744073709551615", "counts": ["1", None]},
        {"key": "a", "moment": "2024-03-01T00:30:00.1230+02:00"},
        {"key": "a", "texts": ["x", None], "counts": [1, None], "singles": [], "days": ["2024-01-01"], "moments": [], "answers": [True]},
        {"key": "a", "text": None, "file": None, "texts": None, "place": None, "day": None},
        {"key": "a", "text": "the null hypothesis"},
    ],
)  # fmt: skip
def test_ordinary_values_need_no_exact_reading(data: dict[str, Any]) -> None:
    entity = CATALOG.nodes["Thing"]
    found = split(lines({"type": "Thing", "data": data}, {"data": {"key": "b"}, "type": "Thing"}), 1).plain.part(0, 1)
    fast = read_fast(entity, "type", entity.name, found)
    assert fast is not None
    assert same(read_exact(CATALOG, found).tables[entity.id][1], fast)


def test_the_type_may_stand_anywhere_in_a_record() -> None:
    entity = CATALOG.nodes["Thing"]
    data = {"key": "a", "text": ',"type":"Memo"'}
    found = split(lines({"data": data, "type": "Thing"}, {"data": data, "id": "a", "type": "Thing"}), 1).plain
    (group,) = groups(found)
    assert isinstance(group, Group)
    assert (group.word, group.name, len(group.lines)) == ("type", "Thing", 2)
    assert read_fast(entity, "type", "Thing", group.lines) is not None
    assert read_fast(entity, "type", "Memo", group.lines) is None


def test_records_of_edges_without_properties_need_no_exact_reading() -> None:
    entity = CATALOG.edges["Bare"]
    found = split(
        lines({"edge": "bare", "from": "a", "to": "b"}, {"edge": "bare", "from": "a", "to": "c", "data": {}}), 1
    )
    fast = read_fast(entity, "edge", "bare", found.plain)
    assert fast is not None
    assert fast.column("__dst").to_pylist() == ["b", "c"]
