"""Random syntax trees of `.gq`, as the parser makes them: for round trips through text.

Trees are legal in form and mostly nonsense in meaning. What no text parses to is not made: a bare name as a filter of a
block (the next clause would read as its arguments), a Conjunction as first operand of a Conjunction, and so on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from omnigraph.lang.query.syntax import (
    FOLDS,
    RANKS,
    BareName,
    BareSystem,
    BlockClause,
    Bounds,
    BranchStatement,
    Call,
    Comparison,
    Conjunction,
    DateLiteral,
    Declaration,
    DeleteSyntax,
    Disjunction,
    ExplainStatement,
    FoldClause,
    HopClause,
    InfixTest,
    InsertSyntax,
    Item,
    Key,
    ListLiteral,
    LiteralValue,
    Membership,
    Negation,
    NullTest,
    Pair,
    ParamSyntax,
    ParamType,
    PropertyAccess,
    QueryFile,
    QuerySyntax,
    ReadBody,
    Selection,
    SettingLine,
    ShowStatement,
    SystemAccess,
    ToolSettings,
    UpdateSyntax,
    Variable,
    Word,
)

# Words that are keywords somewhere, so that every one of them is tried where it is none.
KEYWORDS = [
    *"query match return order limit insert update set delete where from into exists count sum avg min max asc desc".split(),
    *"as now date datetime search fuzzy match_text nearest bm25 rrf contains starts_with branch explain show reset".split(),
    *"all list merge create tool_name expose".split(),
]
RESERVED = ["and", "or", "not", "is", "null", "in", "true", "false"]
PLAIN = ["a", "b", "v", "title", "_x", "aB2"]

names = st.sampled_from([*PLAIN, *PLAIN, *KEYWORDS])
any_names = st.sampled_from([*PLAIN, *KEYWORDS, *RESERVED])
variables = st.sampled_from([*PLAIN, "in", "match", "_"])
types = st.sampled_from(["Vessel", "Port", "A_1", "Vector"])
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def words(of: st.SearchStrategy[str]) -> st.SearchStrategy[Word]:
    return st.builds(Word, of)


literals = st.one_of(
    st.builds(LiteralValue, st.just("integer"), st.integers(-(2**63), 2**64 - 1)),
    st.builds(LiteralValue, st.just("decimal"), st.floats(allow_nan=False, allow_infinity=False)),
    st.builds(LiteralValue, st.just("string"), texts),
    st.builds(LiteralValue, st.just("boolean"), st.booleans()),
)
dates = st.one_of(
    st.builds(DateLiteral, st.just("date"), st.dates().map(str) | texts.filter(lambda t: ":" not in t)),
    st.builds(DateLiteral, st.just("datetime"), st.just("2024-01-05T06:07:08.250") | st.just("no time")),
)
accesses = st.builds(PropertyAccess, words(variables), words(any_names))
leaves: st.SearchStrategy[Any] = st.one_of(
    literals,
    dates,
    st.builds(Variable, variables),
    accesses,
    st.builds(SystemAccess, words(variables), words(names)),
    st.builds(BareName, names),
    st.builds(BareSystem, names),
    st.just(Call("now", ())),
    st.just(ListLiteral(())),
)
signs = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
folds = st.sampled_from(FOLDS)
text_tests = st.sampled_from(["contains", "starts_with"])


def _several(kind: Any, operands: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """At least two operands, of which the first is not of the same kind: that one would have been taken apart."""

    def made(parts: list[Any]) -> Any:
        first = parts[0].operands if isinstance(parts[0], kind) else (parts[0],)
        return kind((*first, *parts[1:]))

    return st.lists(operands, min_size=2, max_size=3).map(made)


def _negated(operand: Any) -> Negation:
    return replace(operand, times=operand.times + 1) if isinstance(operand, Negation) else Negation(operand)


def _ranks(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(lambda p, q: Call("nearest", (p, q)), accesses, inner),
        st.builds(lambda p, q: Call("bm25", (p, q)), inner, inner),
    )


def _compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    two = st.tuples(inner, inner)
    return st.one_of(
        st.builds(Comparison, signs, inner, inner),
        st.builds(Membership, inner, inner),
        st.builds(NullTest, inner, st.booleans()),
        # Its right operand has no parentheses in any text: before `(` the word is the call.
        st.builds(InfixTest, text_tests, inner, leaves),
        inner.map(_negated),
        _several(Conjunction, inner),
        _several(Disjunction, inner),
        st.lists(inner, min_size=1, max_size=3).map(lambda items: ListLiteral(tuple(items))),
        st.builds(Call, folds, st.tuples(inner)),
        st.builds(Call, st.sampled_from(["contains", "starts_with", "search", "match_text"]), two),
        st.builds(Call, st.just("fuzzy"), two | st.tuples(inner, inner, inner)),
        _ranks(inner),
        st.builds(Call, st.just("rrf"), st.tuples(_ranks(inner), _ranks(inner))),
        st.builds(Call, st.just("rrf"), st.tuples(_ranks(inner), _ranks(inner), inner)),
    )


expressions: st.SearchStrategy[Any] = st.recursive(leaves, _compound, max_leaves=6)
pairs = st.builds(Pair, words(any_names), expressions)
edges = st.sampled_from([*PLAIN, *KEYWORDS, *RESERVED, "Follows", "é", ""])
selections = st.one_of(
    words(edges).map(lambda word: Selection((word,))),
    st.lists(words(edges), min_size=2, max_size=3).map(lambda several: Selection(tuple(several))),
    st.just(Selection(())),
    st.lists(words(edges), max_size=2).map(lambda several: Selection(tuple(several), undirected=True)),
)
bounds = st.builds(Bounds, st.integers(-2, 2**64 - 1), st.none() | st.integers(0, 9))
hops = st.builds(
    HopClause,
    words(variables),
    selections,
    words(variables),
    st.none() | words(variables),
    st.none() | bounds,
)
declarations = st.builds(Declaration, words(variables), words(types), st.lists(pairs, max_size=2).map(tuple))


def _is_filter(expression: Any) -> bool:
    return not isinstance(expression, (BareName, BareSystem)) and not _ends_with_name(expression)


def _ends_with_name(expression: Any) -> bool:
    """A filter whose last token is a bare name would take a parenthesis that follows as its arguments."""
    match expression:
        case BareName():
            return True
        case Comparison(right=last) | InfixTest(right=last) | Membership(items=last) | Negation(operand=last):
            return isinstance(last, BareName) or _ends_with_name(last)
        case Conjunction(operands=parts) | Disjunction(operands=parts):
            return _ends_with_name(parts[-1])
        case _:
            return False


filters = expressions.filter(_is_filter)


def _blocks(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    clauses = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(BlockClause, st.sampled_from(["not", "exists"]), clauses),
        st.builds(FoldClause, folds, st.none() | expressions, clauses, signs, filters),
    )


clauses: st.SearchStrategy[Any] = st.recursive(st.one_of(hops, declarations, filters), _blocks, max_leaves=5)


def _keys() -> st.SearchStrategy[Any]:
    def allowed(key: Key) -> bool:
        if key.direction is None or not isinstance(key.expression, Call):
            return True
        name = key.expression.name
        return name != "nearest" and (name not in RANKS or key.direction == "desc")

    return st.builds(Key, expressions, st.sampled_from([None, "asc", "desc"])).filter(allowed)


reads = st.builds(
    ReadBody,
    st.lists(clauses, min_size=1, max_size=4).map(tuple),
    st.lists(st.builds(Item, expressions, st.none() | words(names)), min_size=1, max_size=3).map(tuple),
    st.lists(_keys(), max_size=2).map(tuple),
    st.none() | st.integers(0, 2**64 - 1) | st.builds(Variable, variables),
)
assignments = st.lists(pairs, max_size=3).map(tuple)
writes = st.lists(
    st.one_of(
        st.builds(InsertSyntax, words(types), assignments),
        st.builds(UpdateSyntax, words(types), assignments, expressions),
        st.builds(DeleteSyntax, words(types), expressions),
    ),
    min_size=1,
    max_size=3,
).map(tuple)
param_types = st.one_of(
    st.builds(ParamType, st.sampled_from(["scalar", "list"]), types, nullable=st.booleans()),
    st.builds(ParamType, st.just("vector"), st.just("Vector"), st.integers(0, 9), st.booleans()),
)
params = st.lists(
    st.builds(ParamSyntax, words(variables), param_types, st.none() | texts.filter(bool)),
    max_size=3,
    unique_by=lambda param: param.name.text,
).map(tuple)


def _tool(tool: ToolSettings) -> bool:
    return tool.tool_name is not None or tool.expose is not None


def queries(bodies: st.SearchStrategy[Any]) -> st.SearchStrategy[QuerySyntax]:
    return st.builds(
        QuerySyntax,
        words(any_names),
        params,
        bodies,
        description=st.none() | texts.filter(bool),
        instruction=st.none() | texts.filter(bool),
        tool=st.none() | st.builds(ToolSettings, st.none() | texts, st.none() | st.booleans()).filter(_tool),
    )


setting_names = st.lists(any_names.filter(lambda name: name != "all"), min_size=1, max_size=2).map(".".join)
settings = st.one_of(
    st.builds(SettingLine, words(setting_names), st.integers(-(10**20), 10**20), st.just("integer")),
    st.builds(SettingLine, words(setting_names), texts, st.just("string")),
    st.builds(SettingLine, words(setting_names), any_names, st.just("word")),
    st.builds(SettingLine, words(setting_names | st.just("all"))),
)
branch_names = words(any_names | texts)
statements = st.one_of(
    st.builds(ShowStatement, words(setting_names | st.just("all"))),
    st.builds(BranchStatement, st.sampled_from(["create", "merge"]), branch_names, st.none() | branch_names),
    st.builds(BranchStatement, st.just("delete"), branch_names),
    st.just(BranchStatement("list")),
    st.builds(ExplainStatement, queries(reads)),
)
files = st.one_of(
    st.builds(
        QueryFile,
        text=st.just(""),
        settings=st.lists(settings, max_size=2).map(tuple),
        queries=st.lists(queries(st.one_of(reads, writes)), max_size=2).map(tuple),
    ),
    st.builds(QueryFile, text=st.just(""), settings=st.lists(settings, max_size=2).map(tuple), statement=statements),
)
