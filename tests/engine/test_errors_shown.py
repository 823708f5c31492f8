"""What a Python caller sees of an error: the place, the line with a caret, the fix, and nothing that steers a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import InvalidParams, InvalidQuery, InvalidSchema, OmnigraphError
from omnigraph.lang.diagnostics import Diagnostic

SCHEMA = "node Vessel { imo: I32 @key  tonnage: I32?  title: String? }"
HEAVY = """query heavy() {
  match { $v: Vessel  $v.tonnes > 1 }
  return { $v.title }
}"""
EVIL = "\x1b[2J\u202e<b>\r\n\x9b"
SPELLED = "\\x1b[2J\\u202e<b>\\r\\n\\x9b"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> omnigraph.Graph:
    return omnigraph.init(tmp_path_factory.mktemp("shown") / "g", schema=SCHEMA)


def refused(graph: omnigraph.Graph, source: str) -> InvalidQuery:
    with pytest.raises(InvalidQuery) as caught:
        graph.query(source)
    return caught.value


def drawn(graph: omnigraph.Graph, source: str) -> list[str]:
    """The source line and the one with the carets, without their margin."""
    lines = str(refused(graph, source)).splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("  --> "))
    return [line.split("| ", 1)[1] for line in lines[place + 2 : place + 4]]


def test_it_says_where_and_shows_it_and_how_to_mend_it(graph: omnigraph.Graph) -> None:
    error = refused(graph, HEAVY)
    assert str(error) == (
        "error[T6]: type `Vessel` has no property `tonnes`: expected a property of `Vessel`: imo, title, tonnage\n"
        "  --> 2:23\n"
        "   |\n"
        " 2 |   match { $v: Vessel  $v.tonnes > 1 }\n"
        "   |                       ^^^^^^^^^\n"
        "  fix: $v.tonnage"
    )
    assert isinstance(error.diagnostic, Diagnostic)
    assert error.diagnostic.render("heavy.gq") == str(error).replace("2:23", "heavy.gq:2:23")
    assert str(error.diagnostic) == str(error)
    assert error.message == "type error: T6: type `Vessel` has no property `tonnes`"
    assert error.diagnostic._repr_html_() == "<pre>" + str(error).replace(">", "&gt;") + "</pre>"
    assert str(error).replace(">", "&gt;") in error._repr_html_()


def test_a_schema_is_shown_likewise(tmp_path: Path) -> None:
    with pytest.raises(InvalidSchema) as caught:
        omnigraph.init(tmp_path / "g", schema="node A {\r\n\tname: Strin\r\n}")
    assert str(caught.value).splitlines()[1:] == [
        "  --> 2:8",
        "   |",
        " 2 |     name: Strin",
        "   |           ^^^^^",
        "  fix: String",
    ]


def test_a_parameter_has_no_place_and_still_a_fix(graph: omnigraph.Graph) -> None:
    source = "query q($title: String) { match { $v: Vessel { title: $title } } return { $v.imo } }"
    with pytest.raises(InvalidParams) as caught:
        graph.query(source, titel="x")
    assert str(caught.value).splitlines() == [
        "error[P004]: `q` declares no parameter `titel`: expected a parameter of `q`: title",
        "  fix: title",
    ]


@pytest.mark.parametrize(
    ("before", "shown", "columns"),
    [
        ("", "", 0),
        ('$v.title = "日本e\u0301"  ', '$v.title = "日本e\u0301"  ', 20),
        ('$v.title = "\x07\u202e"  ', '$v.title = "\\x07\\u202e"  ', 25),
    ],
)
def test_the_caret_stands_below_the_fault_whatever_is_before_it(
    graph: omnigraph.Graph, before: str, shown: str, columns: int
) -> None:
    head = "query q() { match { $v: Vessel  "
    line, carets = drawn(graph, f"{head}{before}$v.tonnes > 1 }} return {{ $v }} }}")
    assert carets == " " * (len(head) + columns) + "^^^^^^^^^"
    assert line.startswith(head + shown + "$v.tonnes")


def test_of_a_long_line_the_part_around_the_fault_is_shown(graph: omnigraph.Graph) -> None:
    many = "$v.imo > 0 " * 10_000
    line, carets = drawn(graph, f"query q() {{ match {{ $v: Vessel {many} $v.tonnes > 1 {many} }} return {{ $v }} }}")
    assert len(line) < 130
    assert line[carets.index("^") : carets.rindex("^") + 1] == "$v.tonnes"
    assert line.startswith("… ")
    assert line.endswith(" …")


@pytest.mark.parametrize("source", ["", "// nothing\n", "query q() {", 'query q() { match { $v: Vessel { title: "'])
def test_a_fault_at_the_end_of_the_text_has_a_place_too(graph: omnigraph.Graph, source: str) -> None:
    error = refused(graph, source)
    assert isinstance(error.diagnostic, Diagnostic)
    assert error.diagnostic.position is not None
    assert "  --> " in str(error)
    assert str(error).splitlines()[-1].endswith("^") or "  fix: " in str(error)


def test_a_fix_is_text_to_write_or_there_is_none(graph: omnigraph.Graph) -> None:
    error = refused(graph, "query q() { match { $v: Vessel } return { $v.tonnage > 600 } }")
    shown = error.diagnostic.to_dict()
    assert (shown["code"], shown["expected"]) == ("T43", "`as` and a name")
    assert shown["fix"] == "$v.tonnage > 600 as holds"
    error = refused(graph, "query q() { match { $v: Vessel } return { $v.title, $v.title } }")
    assert error.diagnostic.to_dict()["code"] == "T25"
    assert "fix" not in error.diagnostic.to_dict()


def test_no_text_of_a_caller_or_of_data_steers_a_terminal(graph: omnigraph.Graph) -> None:
    errors: list[OmnigraphError] = []
    with pytest.raises(OmnigraphError) as caught:
        graph.load([{"type": "Vessel", "id": EVIL, "data": {"imo": 1}}], mode="append")
    errors.append(caught.value)
    with pytest.raises(OmnigraphError) as caught:
        graph.query(f'query q() {{ match {{ $v: Vessel {{ imo: "{EVIL}" }} }} return {{ $v }} }}')
    errors.append(caught.value)
    with pytest.raises(OmnigraphError) as caught:
        graph.query("query q() { match { $v: Vessel } return { $v } }", {EVIL: 1})
    errors.append(caught.value)
    with pytest.raises(OmnigraphError) as caught:
        graph.on(EVIL).query("query q() { match { $v: Vessel } return { $v } }")
    errors.append(caught.value)
    for error in errors:
        for text in (str(error), repr(error), error._repr_html_()):
            assert not {*text} & {*EVIL.replace("<b>", "").replace("[2J", "").replace("\n", "")}, repr(text)
        assert "<b>" not in error._repr_html_()
    assert SPELLED in str(errors[-2])


def test_a_handle_spells_out_the_name_of_its_branch(graph: omnigraph.Graph) -> None:
    assert repr(graph.on(EVIL)).endswith(f"on {SPELLED}>")
    assert "\x1b" not in repr(graph.on(EVIL).commits)
