"""Of a large table a few rows are looked up where they lie; what is asked for often becomes resident."""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.query.limits import QuerySettings
from omnigraph.query.output import QueryOutput
from omnigraph.query.residency import columns as columns_module
from support.memory_graphs import MemoryGraph, MemoryTable, catalog_of

Ask = Callable[..., QueryOutput]


def test_few_rows_of_a_large_table_are_taken_until_reading_the_column_would_have_cost_as_much(ask: Ask) -> None:
    graph = MemoryGraph(catalog_of("node Item { k: I64 @key  text: String }"))
    graph.put({"Item": {str(i): {"k": i, "text": f"t{i}"} for i in range(2_000)}})
    entity = graph.catalog.nodes["Item"]
    table = graph.snapshot().table(entity.id)
    assert isinstance(table, MemoryTable)
    column = entity.properties[1].column

    def point(i: int) -> str:
        text = f"match {{ $i: Item {{ k: {i} }} }} return {{ $i.text as t }}"
        return ask(graph, text, QuerySettings()).table["t"][0].as_py()

    assert point(7) == "t7"
    assert not any(column in scan for scan in table.scans)
    looks = max(columns_module._LOOKS_LEAST, 2_000 // columns_module._ROWS_A_LOOK)
    for i in range(looks):
        assert point(i) == f"t{i}"
    assert sum(column in scan for scan in table.scans) == 1


def test_many_rows_make_a_column_resident_at_once(ask: Ask) -> None:
    graph = MemoryGraph(catalog_of("node Item { k: I64 @key  text: String }"))
    graph.put({"Item": {str(i): {"k": i, "text": f"t{i}"} for i in range(2_000)}})
    ask(graph, "match { $i: Item } return { $i.text as t }")
    columns = graph.snapshot().nodes("Item").columns
    assert graph.catalog.nodes["Item"].properties[1].column in columns
