"""What each rule of gq.lark makes: syntax nodes, from the rule's children, as the parser reduces it.

The builder holds no state and no source text. What is well formed but not allowed (`Q005`) is refused here as a `Fault`.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any, cast

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.lalr import Leaf, span_of
from omnigraph.lang.lexical import decimal_value, integer_value, string_value
from omnigraph.lang.query.faults import Fault, Replacement, without_plan
from omnigraph.lang.query.syntax import (
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
    Expression,
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
from omnigraph.lang.values import date_text, datetime_text

Children = list[Any]


def _integer(leaf: Leaf) -> int:
    return integer_value(str(leaf))


def _word(leaf: Leaf) -> Word:
    """A name without its sigil, or the value of a string that stands for one."""
    text = str(leaf)
    return Word(string_value(text) if leaf.type == "STRING" else text.lstrip("$@"), span_of(leaf))


def _place(part: Any) -> Span:
    return span_of(part) if isinstance(part, Leaf) else cast("Span", part.span)


def _across(children: Children) -> Span:
    """From the first part to the last that is there."""
    parts = [part for part in children if part is not None]
    return Span(_place(parts[0]).start, _place(parts[-1]).end)


def _string(leaf: Leaf) -> str:
    return string_value(str(leaf))


class _Texts(list[Any]):
    """Children of a rule that only its parent understands, with the span of the rule."""

    def __init__(self, children: Children, span: Span) -> None:
        super().__init__(children)
        self.span = span


class ExpressionBuilder:
    """The rules of languages.md 6 from Expr down."""

    def disjunction(self, c: Children) -> Disjunction:
        first = c[0].operands if isinstance(c[0], Disjunction) else (c[0],)
        return Disjunction((*first, *c[1:]), _across(c))

    def conjunction(self, c: Children) -> Conjunction:
        first = c[0].operands if isinstance(c[0], Conjunction) else (c[0],)
        return Conjunction((*first, *c[1:]), _across(c))

    def negation(self, c: Children) -> Negation:
        operand: Expression = c[1]
        if isinstance(operand, Negation):
            return Negation(operand.operand, operand.times + 1, _across(c))
        return Negation(operand, 1, _across(c))

    def comparison(self, c: Children) -> Comparison:
        left, sign, right = c
        return Comparison(sign.text, left, right, _across(c))

    def compare(self, c: Children) -> Word:
        return Word(str(c[0]), span_of(c[0]))

    def membership(self, c: Children) -> Membership:
        return Membership(c[0], c[1], _across(c))

    def null_test(self, c: Children) -> NullTest:
        return NullTest(c[0], negated=False, span=_across(c))

    def not_null_test(self, c: Children) -> NullTest:
        return NullTest(c[0], negated=True, span=_across(c))

    def infix_test(self, c: Children) -> InfixTest:
        left, word, right = c
        return InfixTest(cast("Any", str(word)), left, right, _across(c))

    def parenthesised(self, c: Children) -> Expression:
        expression: Expression = c[1]
        return replace(expression, span=_across(c))

    def property_access(self, c: Children) -> PropertyAccess:
        return PropertyAccess(_word(c[0]), _word(c[1]), _across(c))

    def system_access(self, c: Children) -> SystemAccess:
        return SystemAccess(_word(c[0]), _word(c[1]), _across(c))

    def variable(self, c: Children) -> Variable:
        return Variable(_word(c[0]).text, _across(c))

    def bare_system(self, c: Children) -> BareSystem:
        return BareSystem(_word(c[0]).text, _across(c))

    def bare_name(self, c: Children) -> BareName:
        return BareName(str(c[0]), _across(c))

    def integer(self, c: Children) -> LiteralValue:
        return LiteralValue("integer", _integer(c[0]), _across(c))

    def decimal(self, c: Children) -> LiteralValue:
        return LiteralValue("decimal", decimal_value(str(c[0])), _across(c))

    def string(self, c: Children) -> LiteralValue:
        return LiteralValue("string", _string(c[0]), _across(c))

    def boolean(self, c: Children) -> LiteralValue:
        return LiteralValue("boolean", str(c[0]) == "true", _across(c))

    def date(self, c: Children) -> DateLiteral:
        written = DateLiteral(cast("Any", str(c[0])), _string(c[2]), _across(c))
        value = written.value
        if value is None:  # for the check to refuse
            return written
        return replace(written, text=datetime_text(value) if isinstance(value, dt.datetime) else date_text(value))

    def list_literal(self, c: Children) -> ListLiteral:
        return ListLiteral(tuple(c[1:-1]), _across(c))

    def _call(self, c: Children) -> Call:
        return Call(str(c[0]), tuple(c[2:-1]), _across(c))

    now = fold = text_test = search = bm25 = fuzzy = nearest = rrf = _call


class PatternBuilder(ExpressionBuilder):
    """The rules of languages.md 6 for blocks."""

    def block(self, c: Children) -> _Texts:
        return _Texts(c[1:-1], _across(c))

    def not_block(self, c: Children) -> BlockClause:
        return BlockClause("not", tuple(c[1]), _across(c))

    def exists_block(self, c: Children) -> BlockClause:
        return BlockClause("exists", tuple(c[1]), _across(c))

    def fold_argument(self, c: Children) -> Expression:
        return c[1]

    def fold_block(self, c: Children) -> FoldClause:
        fold, argument, block, sign, right = c
        return FoldClause(cast("Any", str(fold)), argument, tuple(block), sign.text, right, _across(c))

    def declaration(self, c: Children) -> Declaration:
        variable, type_name, _, pairs, _ = c
        return Declaration(_word(variable), _word(type_name), tuple(pairs or ()), _across(c))

    def pairs(self, c: Children) -> _Texts:
        return _Texts(c, _across(c))

    def pair(self, c: Children) -> Pair:
        return Pair(_word(c[0]), c[1], _across(c))

    def hop(self, c: Children) -> HopClause:
        left, binding, selection, bounds, right = c
        named = None if binding is None else _word(binding)
        return HopClause(_word(left), selection, _word(right), named, bounds, _across(c))

    def edge(self, c: Children) -> Selection:
        return Selection((_word(c[0]),), span=_across(c))

    def alternation(self, c: Children) -> Selection:
        return Selection(tuple(_word(leaf) for leaf in c[1:-1]), span=_across(c))

    def wildcard(self, c: Children) -> Selection:
        return Selection((), span=_across(c))

    def undirected(self, c: Children) -> Selection:
        return Selection(tuple(_word(leaf) for leaf in c[1:-1]), undirected=True, span=_across(c))

    def undirected_wildcard(self, c: Children) -> Selection:
        return Selection((), undirected=True, span=_across(c))

    def bounds(self, c: Children) -> Bounds:
        _, low, high, _ = c
        return Bounds(_integer(low), None if high is None else _integer(high), _across(c))


class QueryBuilder(PatternBuilder):
    """The rules of languages.md 6 for queries."""

    def query(self, c: Children) -> QuerySyntax:
        _, name, _, params, _, abouts, _, body, _ = c
        once: dict[str, Any] = {}
        for kind, value, span in abouts:
            if kind in once:
                raise Fault("Q005", f"`@{kind}` stands twice", span, "each annotation once")
            once[kind] = value
        return QuerySyntax(
            name=_word(name),
            params=tuple(params or ()),
            body=body if isinstance(body, ReadBody) else tuple(body),
            description=once.get("description"),
            instruction=once.get("instruction"),
            tool=once.get("mcp"),
            span=_across(c),
            body_span=body.span if isinstance(body, _Texts) else Span(_place(c[6]).end, _place(c[8]).start),
        )

    def params(self, c: Children) -> _Texts:
        seen: set[str] = set()
        for param in cast("list[ParamSyntax]", c):
            if param.name.text in seen:
                raise Fault("Q005", f"the parameter `${param.name.text}` is declared twice", param.name.span)
            seen.add(param.name.text)
        return _Texts(c, _across(c))

    def param(self, c: Children) -> ParamSyntax:
        description, name, param_type = c
        text = None if description is None else description[1]
        return ParamSyntax(_word(name), param_type, text, Span(_place(name).start, param_type.span.end))

    def scalar_type(self, c: Children) -> ParamType:
        return ParamType("scalar", str(c[0]), nullable=c[1] is not None, span=_across(c))

    def list_type(self, c: Children) -> ParamType:
        return ParamType("list", str(c[1]), nullable=c[3] is not None, span=_across(c))

    def vector_type(self, c: Children) -> ParamType:
        return ParamType("vector", "Vector", _integer(c[2]), c[4] is not None, _across(c))

    def abouts(self, c: Children) -> Children:
        return c

    def _about(self, c: Children) -> tuple[str, str, Span]:
        text = _string(c[2])
        if not text:
            raise Fault("Q005", f"`{c[0]}` is empty", span_of(c[2]), "a text")
        return str(c[0]).lstrip("@"), text, _across(c)

    description = instruction = _about

    def tool(self, c: Children) -> tuple[str, ToolSettings, Span]:
        settings: dict[str, Any] = {}
        for name, value, span in c[2:-1]:
            if name in settings:
                raise Fault("Q005", f"`{name}` stands twice in `@mcp`", span, "each argument once")
            settings[name] = value
        return "mcp", ToolSettings(**settings), _across(c)

    def tool_name(self, c: Children) -> tuple[str, str, Span]:
        return "tool_name", _string(c[1]), _across(c)

    def expose(self, c: Children) -> tuple[str, bool, Span]:
        return "expose", str(c[1]) == "true", _across(c)

    def read(self, c: Children) -> ReadBody:
        _, block, _, _, items, _, order, limit = c
        count, span = limit or (None, Span(0, 0))
        return ReadBody(tuple(block), tuple(items), tuple(order or ()), count, span)

    def items(self, c: Children) -> Children:
        return c

    def item(self, c: Children) -> Item:
        expression, alias = c
        return Item(expression, None if alias is None else _word(alias), _across(c))

    def order(self, c: Children) -> Children:
        return c[2:-1]

    def key(self, c: Children) -> Key:
        expression, direction = c
        if direction is not None and isinstance(expression, Call):
            _check_rank_direction(expression.name, direction)
        return Key(expression, cast("Any", None if direction is None else str(direction)), _across(c))

    def limit(self, c: Children) -> tuple[int | Variable, Span]:
        leaf = c[1]
        if leaf.type == "VAR":
            return Variable(_word(leaf).text, span_of(leaf)), span_of(leaf)
        count = _integer(leaf)
        if count < 0:
            raise Fault("Q001", "a limit is not negative", span_of(leaf), "an integer of at least 0")
        return count, span_of(leaf)

    def writes(self, c: Children) -> _Texts:
        return _Texts(c, _across(c))

    def assignments(self, c: Children) -> Children:
        return c

    def insert(self, c: Children) -> InsertSyntax:
        return InsertSyntax(_word(c[1]), tuple(c[3]), _across(c))

    def update(self, c: Children) -> UpdateSyntax:
        return UpdateSyntax(_word(c[1]), tuple(c[4]), c[6], _across(c))

    def delete(self, c: Children) -> DeleteSyntax:
        return DeleteSyntax(_word(c[1]), c[2], _across(c))


def _check_rank_direction(rank: str, direction: Leaf) -> None:
    span = span_of(direction)
    if rank == "nearest":
        message = f"`nearest` takes no `{direction}`: the nearest come first"
        raise Fault("Q005", message, span, f"no `{direction}`", edits=(Replacement(span, ""),))
    if rank in ("bm25", "rrf") and str(direction) == "asc":
        message = f"`{rank}` cannot be turned round: the best come first"
        raise Fault("Q005", message, span, "`desc`, or neither word", "desc", (Replacement(span, "desc"),))


class FileBuilder(QueryBuilder):
    """All rules; the result of a whole text is the list of its entries."""

    def start(self, c: Children) -> Children:
        return c

    def set_line(self, c: Children) -> SettingLine:
        _, name, _, value, _ = c
        span = span_of(value)
        match value.type:
            case "INT":
                return SettingLine(name, _integer(value), "integer", span, _across(c))
            case "STRING":
                return SettingLine(name, _string(value), "string", span, _across(c))
            case _:
                return SettingLine(name, str(value), "word", span, _across(c))

    def reset_line(self, c: Children) -> SettingLine:
        return SettingLine(_setting_name(c[1]), span=_across(c))

    def show(self, c: Children) -> ShowStatement:
        return ShowStatement(_setting_name(c[1]), _across(c))

    def setting_name(self, c: Children) -> Word:
        return Word(".".join(str(leaf) for leaf in c), _across(c))

    def branch_create(self, c: Children) -> BranchStatement:
        return BranchStatement("create", _word(c[2]), None if c[3] is None else _word(c[3]), _across(c))

    def branch_delete(self, c: Children) -> BranchStatement:
        return BranchStatement("delete", _word(c[2]), None, _across(c))

    def branch_merge(self, c: Children) -> BranchStatement:
        return BranchStatement("merge", _word(c[2]), None if c[3] is None else _word(c[3]), _across(c))

    def branch_list(self, c: Children) -> BranchStatement:
        return BranchStatement("list", span=_across(c))

    def explain(self, c: Children) -> ExplainStatement:
        query: QuerySyntax = c[1]
        if not isinstance(query.body, ReadBody):
            raise without_plan("query is a mutation", query.body_span, "`match`")
        return ExplainStatement(query, _across(c))


def _setting_name(part: Any) -> Word:
    return _word(part) if isinstance(part, Leaf) else part
