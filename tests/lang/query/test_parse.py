"""What the parser makes of texts: the choices that one token does not settle, places, limits, files."""

from __future__ import annotations

import logging
from importlib import resources
from typing import Any

import lark
import pytest

from omnigraph.errors import InvalidQuery
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.lalr import _NoLexer
from omnigraph.lang.query.parse import parse_file
from omnigraph.lang.query.printer import clause_texts, expression_text, query_text
from omnigraph.lang.query.syntax import (
    BranchStatement,
    Declaration,
    ExplainStatement,
    HopClause,
    InsertSyntax,
    Negation,
    QuerySyntax,
    ReadBody,
    SettingLine,
    ShowStatement,
    ToolSettings,
    UpdateSyntax,
    Word,
)


def parsed(source: str) -> QuerySyntax:
    (query,) = parse_file(source).queries
    return query


def read(source: str) -> ReadBody:
    body = parsed(source).body
    assert isinstance(body, ReadBody)
    return body


def clauses(block: str) -> list[str]:
    """The clauses of a block, each in canonical text, hops and declarations marked."""
    body = read(f"query q() {{ match {{ {block} }} return {{ 1 }} }}")
    marks = {HopClause: "hop ", Declaration: "node "}
    texts = clause_texts(body.clauses)
    return [marks.get(type(clause), "") + text for clause, text in zip(body.clauses, texts, strict=True)]


def refused(source: str | bytes) -> Diagnostic:
    with pytest.raises(InvalidQuery) as caught:
        parse_file(source)
    assert isinstance(caught.value.diagnostic, Diagnostic)
    return caught.value.diagnostic


CHOICES: dict[str, list[str]] = {
    # declarations, hops and filters that begin with a variable
    "$v: Vessel $flag $w: Port": ["node $v: Vessel", "$flag", "node $w: Port"],
    "$flag $v : Vessel": ["$flag", "node $v: Vessel"],
    "$a $e:follows $b": ["hop $a $e:follows $b"],
    "$a $e : (follows | tows) $b": ["hop $a $e:(follows | tows) $b"],
    "$a $e:* $b": ["hop $a $e:* $b"],
    "$a $e:<follows> $b": ["hop $a $e:<follows> $b"],
    "$a $_:<*> $b": ["hop $a $_:<*> $b"],
    "$a follows $b $c": ["hop $a follows $b", "$c"],
    "$a * $b": ["hop $a * $b"],
    "$a*{1,2}$b": ["hop $a *{1,2} $b"],
    '$a "in" $b': ['hop $a "in" $b'],
    '$a "Follows"{1,} $b': ['hop $a "Follows"{1,} $b'],
    "$a <tows> $b": ["hop $a <tows> $b"],
    "$a<tows>$b": ["hop $a <tows> $b"],
    '$a <tows | "in"> $b': ['hop $a <tows | "in"> $b'],
    "$a <*>{1,3} $b": ["hop $a <*>{1,3} $b"],
    "$a < $b": ["$a < $b"],
    '$q < "m"': ['$q < "m"'],
    '$q < "m" $q follows $b': ['$q < "m"', "hop $q follows $b"],
    "$a < b $c follows $d": ["$a < b", "hop $c follows $d"],
    "$x = $y $a follows $b": ["$x = $y", "hop $a follows $b"],
    "$a.x $b follows $c": ["$a.x", "hop $b follows $c"],
    "$a match $b": ["hop $a match $b"],
    "$a count $b": ["hop $a count $b"],
    "$a count{1,2} $b": ["hop $a count{1,2} $b"],
    "$a exists{1,2} $b": ["hop $a exists{1,2} $b"],
    "$flag exists { $v callsAt $p } $w: Port": ["$flag", "exists { $v callsAt $p }", "node $w: Port"],
    "$flag exists { 1 < $x } $w: Port": ["$flag", "exists { 1 < $x }", "node $w: Port"],
    "$flag count { $v callsAt $p } > 2 $w: Port": ["$flag", "count { $v callsAt $p } > 2", "node $w: Port"],
    '$flag search($v.title, "a")': ["$flag", 'search($v.title, "a")'],
    # contains and starts_with
    "$a contains $b": ["hop $a contains $b"],
    "$a contains{1,2} $b": ["hop $a contains{1,2} $b"],
    "$q contains $v.title": ["$q contains $v.title"],
    "$q starts_with $v.@id": ["$q starts_with $v.@id"],
    '$q contains "a"': ['$q contains "a"'],
    "$v.title contains $q": ["$v.title contains $q"],
    "$q contains $v . title": ["$q contains $v.title"],
    "contains($q, $v.title)": ["contains($q, $v.title)"],
    "$flag contains($q, $v.title)": ["$flag", "contains($q, $v.title)"],
    # not, exists, folds
    "not { $a follows $b }": ["not { $a follows $b }"],
    "not $a.x not not $b.x": ["not $a.x", "not not $b.x"],
    "not ($a.x)": ["not $a.x"],
    "exists { $a follows $b  not { $b follows $c } }": ["exists { $a follows $b  not { $b follows $c } }"],
    "sum($c.lag) { $v $c:follows $w } > 0": ["sum($c.lag) { $v $c:follows $w } > 0"],
    "count($v) > 1": ["count($v) > 1"],
    "count { $a follows $b } >= $n $c": ["count { $a follows $b } >= $n", "$c"],
    "min(($a.x)) { not { $a.y } } = -1": ["min($a.x) { not { $a.y } } = -1"],
    # parentheses where a lone variable would read as the left end of a hop, and only there
    '($flag) "x" $v: Vessel': ["($flag)", '"x"', "node $v: Vessel"],
    '$flag "x" in $v.tags $w: Port': ["$flag", '"x" in $v.tags', "node $w: Port"],
    "($flag) $v.x": ["$flag", "$v.x"],
    # words that are names here
    "order limit10": ["order", "limit10"],
    "$v.in = $v.not": ["$v.in = $v.not"],
    "$v: Vessel { in: 1, not: 2, match: 3, }": ["node $v: Vessel { in: 1, not: 2, match: 3 }"],
    "nothing querye": ["nothing", "querye"],
    "date = now": ["date = now"],
    "sum = count": ["sum = count"],
    # numbers
    "$v.imo=-1": ["$v.imo = -1"],
    "$v.imo > -1 -2 < 3": ["$v.imo > -1", "-2 < 3"],
}


@pytest.mark.parametrize("block", CHOICES)
def test_a_block_is_read_as_the_chapter_chooses(block: str) -> None:
    assert clauses(block) == CHOICES[block]


ITEMS: dict[str, list[str]] = {
    "$v.title $v.imo": ["$v.title", "$v.imo"],
    "$v.title, $v.imo,": ["$v.title", "$v.imo"],
    "$v.title as t $v.imo as order": ["$v.title as t", "$v.imo as order"],
    "$v.title as as as as as": ["$v.title as as", "as as as"],
    "count($v) as count, count": ["count($v) as count", "count"],
    "$a and $b not $c": ["$a and $b", "not $c"],
    "$v.title contains $w.title contains($a, $b) as c": ["$v.title contains $w.title", "contains($a, $b) as c"],
    "1 [2] in $v.x": ["1", "[2] in $v.x"],
    "$v.x is not null as x not $y": ["$v.x is not null as x", "not $y"],
}


@pytest.mark.parametrize("items", ITEMS)
def test_items_end_where_the_next_token_cannot_continue_them(items: str) -> None:
    body = read(f"query q() {{ match {{ $v: Vessel }} return {{ {items} }} }}")
    shown = [expression_text(i.expression) + (f" as {i.alias.text}" if i.alias else "") for i in body.items]
    assert shown == ITEMS[items]


def test_a_word_before_a_colon_begins_an_assignment() -> None:
    (insert, update) = parsed(
        "query q() { insert T { a: $x in: 3 is: not $y, and: b or: 1 } "
        "update T set { contains: 1 set: 2 where: 3 } where delete = 1 or insert }"
    ).body  # pyright: ignore[reportGeneralTypeIssues]
    assert isinstance(insert, InsertSyntax)
    assert isinstance(update, UpdateSyntax)
    assert [(p.name.text, expression_text(p.value)) for p in insert.assignments] == [
        ("a", "$x"),
        ("in", "3"),
        ("is", "not $y"),
        ("and", "b"),
        ("or", "1"),
    ]
    assert [p.name.text for p in update.assignments] == ["contains", "set", "where"]
    assert expression_text(update.where) == "delete = 1 or insert"


def test_statements_of_a_mutation_follow_each_other() -> None:
    body = parsed(
        "query q() { insert T { } update T set { a: 1 } where x insert insert: 1 }".replace("insert: 1", "T { b: 2 }")
    ).body
    assert isinstance(body, tuple)
    assert [type(statement).__name__ for statement in body] == ["InsertSyntax", "UpdateSyntax", "InsertSyntax"]


def test_every_list_may_end_in_a_comma() -> None:
    source = (
        'query q($a: I64, $b: [String],) @mcp(tool_name: "t", expose: false,) { match { $v: Vessel { imo: 1, } '
        '$v.imo in [1, 2,] contains($v.title, "a",) } '
        "return { $v.title, count($v), } order { $v.title, } limit 5 }"
    )
    query = parsed(source)
    assert query.tool == ToolSettings("t", expose=False)
    assert len(query.params) == 2
    assert parsed(query_text(query)) == query


def test_a_query_carries_its_descriptions() -> None:
    query = parsed(
        'query find(@description("words") $q: String?) @instruction("seldom") @description("finds") '
        "{ match { $v: Vessel } return { $v } }"
    )
    assert (query.description, query.instruction) == ("finds", "seldom")
    assert query.params[0].description == "words"
    assert query.params[0].type.nullable


@pytest.mark.parametrize("name", ["in", "not", "null", "true", "query", "match", "set", "all"])
def test_any_word_names_a_query(name: str) -> None:
    assert parsed(f"query {name}() {{ match {{ $v: Vessel }} return {{ $v }} }}").name.text == name


# --- missing parameter lists


@pytest.mark.parametrize(
    "source", ["query busy {", "query busy", "query busy\n{ }", "query in match", "query busy()) {"]
)
def test_a_missing_parameter_list_is_repaired_by_machine(source: str) -> None:
    found = refused(source)
    if source.startswith("query busy()"):
        assert found.code == "Q001"
        return
    name = source.split()[1]
    end = len(f"query {name}")
    assert (found.code, found.fix) == ("Q002", f"query {name}()")
    assert found.position is not None
    assert found.end is not None
    assert (found.position.column, found.position.byte, found.end.byte) == (end + 1, end, end)
    assert found.suggestion is not None
    assert found.suggestion.applicability == "machine_applicable"
    assert [(e.start, e.end, e.replacement) for e in found.suggestion.edits] == [(end, end, "()")]


def test_the_command_line_shows_it_as_the_chapter_does() -> None:
    assert refused("query busy {").render("harbour.gq", caret=False) == (
        "error[Q002]: a query declares its parameters, even none: expected `(`\n"
        "  --> harbour.gq:1:11\n"
        "  fix: query busy()"
    )


def test_no_other_parse_error_is_repaired_by_machine() -> None:
    for source in ["query q() { match { $a == 1", "query q() { match { $a = null", "query q() { match { $a $e:in"]:
        suggestion = refused(source).suggestion
        assert suggestion is not None
        assert suggestion.applicability == "needs_review"


@pytest.mark.parametrize(
    ("source", "repaired"),
    [
        ("query é() {", None),
        ('query q() { match { $v.title = "é" $v.note = null', 'query q() { match { $v.title = "é" $v.note is null'),
        ("query q() { /* 𝄞 */ match { $v.note != null", "query q() { /* 𝄞 */ match { $v.note is not null"),
        ("query q() { match { /*é*/ $v.a == 1", "query q() { match { /*é*/ $v.a = 1"),
        ("query q() { match { /*é*/ $v.a <> 1", "query q() { match { /*é*/ $v.a != 1"),
        ("query q() { match { /*é*/ $a <in> $b", 'query q() { match { /*é*/ $a <"in"> $b'),
    ],
)
def test_edits_are_offsets_in_bytes(source: str, repaired: str | None) -> None:
    suggestion = refused(source).suggestion
    if repaired is None:
        assert suggestion is None
        return
    assert suggestion is not None
    data = source.encode()
    for edit in reversed(suggestion.edits):
        data = data[: edit.start] + edit.replacement.encode() + data[edit.end :]
    assert data.decode() == repaired


# --- sources


def test_bytes_that_are_not_utf8_are_refused_at_their_offset() -> None:
    found = refused(b"query q() { // \xc3\xa9\xff\n}")
    assert found.code == "Q001"
    assert found.position is not None
    assert (found.position.line, found.position.column, found.position.byte) == (1, 17, 17)


def test_half_a_surrogate_pair_is_no_text() -> None:
    assert refused('query q() { match { $v.title = "\ud800" } }').code == "Q001"


def test_a_byte_order_mark_is_skipped() -> None:
    source = "\ufeffquery q() { match { $v: Vessel } return { $v } }"
    assert parse_file(source.encode()) == parse_file(source[1:])


@pytest.mark.parametrize("space", ["\u00a0", "\u2003", "\u2028", "\ufeff", "\x0c", "\x0b"])
def test_other_spaces_are_refused(space: str) -> None:
    source = f"query q() {{ match {{ $v: Vessel{space}}} return {{ $v }} }}"
    found = refused(source)
    assert found.code == "Q001"
    assert found.position is not None
    assert found.position.byte == source.index(space)
    assert "\n" not in found.message


def test_strings_and_comments_hold_any_character() -> None:
    body = read('query q() { // \u00a0 𝄞 "\n match { $v.title = "\u00a0é𝄞\n\u2028" /* \x00 " */ } return { $v } }')
    assert expression_text(body.clauses[0]) == '$v.title = "\u00a0é𝄞\\n\u2028"'  # pyright: ignore[reportArgumentType]


def test_names_are_ascii() -> None:
    for name in ["$é", "$v.prénom", "$1"]:
        assert refused(f"query q() {{ match {{ {name} }} return {{ 1 }} }}").code == "Q001"


def test_positions_count_lines_code_points_and_bytes() -> None:
    found = refused('query q() {\r\n\t"𝄞é" match')
    assert found.position is not None
    assert found.end is not None
    assert (found.position.line, found.position.column, found.position.byte) == (2, 2, 14)
    assert (found.end.column, found.end.byte) == (6, 22)
    found = refused('query q() { match {\r\n\t"𝄞é" ]')
    assert found.position is not None
    assert (found.position.line, found.position.column, found.position.byte) == (2, 7, 31)


def test_a_fault_names_the_query_that_it_is_in() -> None:
    good = "query one() { match { $v: Vessel } return { $v } }\n"
    assert refused(good + "query two() { match { ] } }").query == "two"
    assert refused(good + "query two").query == "two"
    assert refused(good + "]").query is None
    assert refused("branch ]").query is None


# --- depth


def nested(opening: str, closing: str, depth: int, middle: str = "1") -> str:
    return f"query q() {{ match {{ $v: Vessel }} return {{ {opening * depth}{middle}{closing * depth} }} }}"


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("(", ")"), ("[", "]"), ("count(", ")"), ("not (", ")"), ("(1 or (2 and not ", ") = 3)"), ("contains(1, ", ")")],
)
def test_brackets_nest_100_deep_and_no_deeper(opening: str, closing: str) -> None:
    levels = opening.count("(") + opening.count("[")
    tree = read(nested(opening, closing, 100 // levels))
    text = expression_text(tree.items[0].expression)
    assert read(f"query q() {{ match {{ $v: Vessel }} return {{ {text} }} }}").items == tree.items
    source = nested(opening, closing, 100 // levels + 1)
    found = refused(source)
    assert (found.code, found.expected) == ("Q001", "at most 100 levels")
    assert found.position is not None
    assert source[: found.position.byte].count("(") + source[: found.position.byte].count("[") == 100 + 1


def test_blocks_nest_100_deep_with_what_they_hold() -> None:
    def source(depth: int, inside: str = "$a follows $b") -> str:
        return f"query q() {{ match {{ {'not { ' * depth} {inside} {'} ' * depth} }} return {{ $v }} }}"

    assert len(query_text(parsed(source(99)))) > 500
    assert refused(source(100)).code == "Q001"
    # neither a selection nor a binding match nor bounds are nesting
    read(source(99, "$a (follows | tows){1,2} $b  $v: Vessel { imo: 1 }"))
    assert refused(source(99, "(1 = 2)")).code == "Q001"


def test_a_long_text_needs_no_deep_stack() -> None:
    chain = " and ".join(["$v.imo = 1"] * 5_000)
    assert len(expression_text(read(f"query q() {{ match {{ {chain} }} return {{ 1 }} }}").clauses[0])) > 50_000  # pyright: ignore[reportArgumentType]
    (negated,) = read(f"query q() {{ match {{ {'not ' * 10_001} $v.imo = 1 }} return {{ 1 }} }}").clauses
    assert isinstance(negated, Negation)
    assert negated.times == 10_001
    items = ", ".join(str(n) for n in range(5_000))
    read(f"query q() {{ match {{ $v.imo in [{items}] }} return {{ 1 }} }}")


def test_unclosed_brackets_without_end_are_refused_quickly() -> None:
    for opening in ["(", "[", "{", "count(", "not {", "$a (x|", "$a <x|"]:
        assert refused("query q() { match { " + opening * 2_000).code == "Q001"


# --- files


def test_an_empty_text_is_a_file_of_nothing() -> None:
    for source in ["", "  // only this\n", "\ufeff"]:
        file = parse_file(source)
        assert (file.settings, file.queries, file.statement) == ((), (), None)


def test_settings_lines() -> None:
    file = parse_file('set int64_json = string; set a.b = "x;"; set n = -5; reset all; reset traversal;')
    assert file.settings == (
        SettingLine(Word("int64_json"), "string", "word"),
        SettingLine(Word("a.b"), "x;", "string"),
        SettingLine(Word("n"), -5, "integer"),
        SettingLine(Word("all")),
        SettingLine(Word("traversal")),
    )


STATEMENTS: dict[str, Any] = {
    "show all": ShowStatement(Word("all")),
    "show traversal;": ShowStatement(Word("traversal")),
    "branch list;": BranchStatement("list"),
    "branch create review": BranchStatement("create", Word("review")),
    'branch create "review/tides" from main;': BranchStatement("create", Word("review/tides"), Word("main")),
    "branch create from from from": BranchStatement("create", Word("from"), Word("from")),
    "branch create in": BranchStatement("create", Word("in")),
    "branch delete list": BranchStatement("delete", Word("list")),
    "branch merge create": BranchStatement("merge", Word("create")),
    'branch merge a into "b c"': BranchStatement("merge", Word("a"), Word("b c")),
}


@pytest.mark.parametrize("source", STATEMENTS)
def test_statements(source: str) -> None:
    file = parse_file(source)
    assert file.statement == STATEMENTS[source]
    assert file.queries == ()
    assert parse_file("set traversal = auto; " + source).statement == STATEMENTS[source]


def test_explain_holds_a_query() -> None:
    file = parse_file("explain query q() { match { $v: Vessel } return { $v } }")
    assert isinstance(file.statement, ExplainStatement)
    assert file.statement.query.name.text == "q"
    assert file.queries == ()


def test_a_file_holds_any_number_of_queries() -> None:
    one = "query one() { match { $v: Vessel } return { $v } }"
    file = parse_file(f"set traversal = auto; {one} {one.replace('one', 'two')}")
    assert [query.name.text for query in file.queries] == ["one", "two"]
    text = file.text
    assert [text[q.span.start : q.span.end] for q in file.queries] == [one, one.replace("one", "two")]


# --- the grammar


def test_the_grammar_is_lalr_1_without_a_conflict(caplog: pytest.LogCaptureFixture) -> None:
    text = resources.files("omnigraph.lang.query").joinpath("gq.lark").read_text(encoding="utf-8")
    lark.logger.setLevel(logging.DEBUG)
    lark.logger.propagate = True
    with caplog.at_level(logging.DEBUG, logger=lark.logger.name):
        lark.Lark(text, parser="lalr", lexer=_NoLexer, start="start", debug=True)
    assert "conflict" not in caplog.text.lower()


def test_mismatched_brackets_are_refused_where_they_do_not_fit() -> None:
    found = refused("query q() { match { (1 = 2} ) } return { 1 } }")
    assert (found.code, found.position and found.position.byte) == ("Q001", 26)
    assert refused("query q() { match { $a <*> { $b } return { 1 } }").code == "Q001"
    assert refused("query q() { match { $a follows{ $b } return { 1 } }").code == "Q001"
