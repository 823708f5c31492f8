"""A catalog survives as canonical JSON and as text, and its digest names it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given

from omnigraph.errors import FormatMismatch
from omnigraph.lang.schema.catalog import Arguments, BareWord, Catalog, EdgeType, Interface, NodeType, Property
from omnigraph.lang.schema.catalog_json import (
    catalog_from_json,
    catalog_to_json,
    catalog_values,
    schema_digest,
    type_from_spelling,
)
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.schema.printing import schema_text
from support.schemas import HARBOUR, counter, schema_texts


def compiled(text: str) -> Catalog:
    return compile_schema(text, mint=counter())


def exact(catalog: Catalog) -> str:
    """A spelling in which 1, 1.0 and true differ, as they do not for `==`."""
    return repr(catalog)


@given(schema_texts())
def test_a_catalog_reads_back_from_json_and_from_text(text: str) -> None:
    catalog = compiled(text)
    assert exact(catalog_from_json(catalog_to_json(catalog))) == exact(catalog)
    printed = schema_text(catalog)
    assert exact(compiled(printed)) == exact(catalog)
    assert schema_text(compiled(printed)) == printed


def test_what_only_history_knows_survives_json() -> None:
    catalog = compiled(HARBOUR)
    vessel = replace(catalog.nodes["Vessel"], retired=("crew", "crew__2"))
    old = replace(catalog, nodes={**catalog.nodes, "Vessel": vessel})
    assert catalog_from_json(catalog_to_json(old)) == old


def test_the_json_is_canonical() -> None:
    text = catalog_to_json(compiled(HARBOUR))
    value = json.loads(text)
    assert text == json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert [node["name"] for node in value["nodes"]] == ["Vessel", "Port", "Sailor"]
    assert "null" not in text.replace('"cardinality":[0,null]', "")


def test_every_field_of_a_catalog_is_in_its_json() -> None:
    text = """interface I { a: I32 @key @unique @index @description("d") @x }
    node A @description("d") @instruction("i") @x(1) implements I {
      s: String  v: Vector(2) @embed("s", model="m")  @range(a, 0..1)  @check(s, "x") }
    edge E: A -> A @description("d") @instruction("i") @x @card(0..1) { b: I32 @key(@src, @dst) @unique(b) @index(b) }"""
    catalog = compiled(text)
    full = replace(
        catalog,
        nodes={"A": replace(catalog.nodes["A"], retired=("r",))},
        edges={"E": replace(catalog.edges["E"], retired=("r",))},
    )
    value = catalog_values(full)
    for kind, of in (("nodes", NodeType), ("edges", EdgeType), ("interfaces", Interface)):
        fields = set(of.__dataclass_fields__) - {"kind"}
        assert fields == set(value[kind][0])
    properties = [declared for kind in ("nodes", "interfaces") for of in value[kind] for declared in of["properties"]]
    assert set(Property.__dataclass_fields__) == {name for declared in properties for name in declared}


def test_the_digest_is_sha256_over_source_and_catalog() -> None:
    catalog = compiled(HARBOUR)
    array = f"[{json.dumps(HARBOUR, ensure_ascii=False)},{catalog_to_json(catalog)}]"
    assert schema_digest(HARBOUR, catalog) == hashlib.sha256(array.encode()).hexdigest()
    assert schema_digest(HARBOUR + "\n", catalog) != schema_digest(HARBOUR, catalog)


def test_a_catalog_of_another_generation_is_named_as_such() -> None:
    with pytest.raises(FormatMismatch):
        catalog_from_json('{"format":2}')


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format":1}',
        '{"format":1,"nodes":[{}],"edges":[],"interfaces":[]}',
        '{"format":1,"nodes":3,"edges":[],"interfaces":[]}',
        catalog_to_json(compiled(HARBOUR)).replace("U32", "U33"),
    ],
)
def test_damaged_json_is_no_catalog(text: str) -> None:
    with pytest.raises(ValueError):
        catalog_from_json(text)


@pytest.mark.parametrize("text", ["", "Strin", "String??", "[String?]", "Vector(2", "enum()", " String"])
def test_a_type_has_one_spelling(text: str) -> None:
    with pytest.raises(ValueError):
        type_from_spelling(text)


def test_the_harbour_prints_as_a_person_would_write_it() -> None:
    printed = schema_text(compiled(HARBOUR))
    assert printed.startswith(
        "interface Named {\n  title: String @index\n  note: String?\n}\n\nnode Vessel implements "
    )
    assert "\nedge ServesOn: Sailor -> Vessel @card(0..1)\n" in printed
    assert printed.count("title") == 3  # an injected property is not written again


def test_arguments_of_annotations_keep_their_kind() -> None:
    catalog = compiled('node A @x(1) @x(1.0) @x(true) @x("1") @x(one) @x(one, n=1, m=1.0) { }')
    notes = [argument for _, argument in catalog_from_json(catalog_to_json(catalog)).nodes["A"].annotations]
    wanted = [1, 1.0, True, "1", BareWord("one"), Arguments(BareWord("one"), (("n", 1), ("m", 1.0)))]
    assert list(map(repr, notes)) == list(map(repr, wanted))
