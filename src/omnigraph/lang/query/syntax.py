"""The syntax tree of `.gq`: what was written, where, and nothing of what it means.

Spans do not take part in equality, so two trees are equal if the same was written whatever the layout. What layout and
parentheses leave open is settled here once: parentheses are not kept, `a and b and c` is one `Conjunction` of three
(`(a and b) and c` is the same tree, `a and (b and c)` is not), `not not a` is one `Negation` of two. Trees are
therefore no deeper than their brackets, however long the text.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.values import date_from_text, datetime_from_text

CompareSign = Literal["=", "!=", "<", "<=", ">", ">="]
FoldName = Literal["count", "sum", "avg", "min", "max"]
TextTestName = Literal["contains", "starts_with"]

FOLDS: tuple[FoldName, ...] = ("count", "sum", "avg", "min", "max")
TEXT_TESTS: tuple[TextTestName, ...] = ("contains", "starts_with")
SEARCH_PREDICATES = ("search", "match_text", "fuzzy")
RANKS = ("nearest", "bm25", "rrf")
SEARCH_CALLS = (*SEARCH_PREDICATES, *RANKS)
CALLS = ("now", "date", "datetime", *FOLDS, *TEXT_TESTS, *SEARCH_CALLS)
RESERVED = frozenset({"and", "or", "not", "is", "null", "in", "true", "false"})

NOWHERE = Span(0, 0)


def _span() -> Span:
    return field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Word:
    """A name with its place; `text` without `$` or `@`."""

    text: str
    span: Span = _span()


# --- expressions


@dataclass(frozen=True, slots=True)
class LiteralValue:
    """A number, string or Boolean. `kind` keeps `1`, `1.0` and `true` apart, which Python takes for equal."""

    kind: Literal["integer", "decimal", "string", "boolean"]
    value: int | float | str | bool
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class DateLiteral:
    """`date("…")` or `datetime("…")`. `text` is the one spelling of its value (languages.md 20.1), or as written if it has
    none.
    """

    kind: Literal["date", "datetime"]
    text: str
    span: Span = _span()

    @property
    def value(self) -> dt.date | dt.datetime | None:
        """None if the text is no date."""
        return date_from_text(self.text) if self.kind == "date" else datetime_from_text(self.text)


@dataclass(frozen=True, slots=True)
class Variable:
    """`$v`, of the pattern or a parameter."""

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class PropertyAccess:
    """`$v.name`"""

    variable: Word
    name: Word
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class SystemAccess:
    """`$v.@name`"""

    variable: Word
    name: Word
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class BareName:
    """`name`: a property of a mutation's target, or an alias in `order`."""

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class BareSystem:
    """`@name`"""

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ListLiteral:
    items: tuple[Expression, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Call:
    """Any call but `date` and `datetime`. The grammar has seen to the number of arguments."""

    name: str
    arguments: tuple[Expression, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Comparison:
    sign: CompareSign
    left: Expression
    right: Expression
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Membership:
    """`item in items`"""

    item: Expression
    items: Expression
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class NullTest:
    operand: Expression
    negated: bool
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class InfixTest:
    """`left contains right`, `left starts_with right`: the old spellings."""

    word: TextTestName
    left: Expression
    right: Expression
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Negation:
    """`not operand`, written `times` times; the operand is no Negation."""

    operand: Expression
    times: int = 1
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Conjunction:
    """At least two operands; the first is no Conjunction."""

    operands: tuple[Expression, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Disjunction:
    """At least two operands; the first is no Disjunction."""

    operands: tuple[Expression, ...]
    span: Span = _span()


Expression = (
    LiteralValue
    | DateLiteral
    | Variable
    | PropertyAccess
    | SystemAccess
    | BareName
    | BareSystem
    | ListLiteral
    | Call
    | Comparison
    | Membership
    | NullTest
    | InfixTest
    | Negation
    | Conjunction
    | Disjunction
)


def operands(expression: Expression) -> tuple[Expression, ...]:
    """The expressions that this one is made of, in written order."""
    match expression:
        case ListLiteral(items=parts) | Call(arguments=parts):
            return parts
        case Conjunction(operands=parts) | Disjunction(operands=parts):
            return parts
        case Comparison(left=left, right=right) | InfixTest(left=left, right=right):
            return (left, right)
        case Membership(item=item, items=items):
            return (item, items)
        case NullTest(operand=operand) | Negation(operand=operand):
            return (operand,)
        case _:
            return ()


def parts_of(expression: Expression) -> Iterator[Expression]:
    """An expression and all it is made of, in written order."""
    pending = [expression]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(operands(node)))


# --- patterns


@dataclass(frozen=True, slots=True)
class Pair:
    """`name: value` of a binding match or an assignment list."""

    name: Word
    value: Expression
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Declaration:
    """`$x: Type { pairs }`"""

    variable: Word
    type_name: Word
    pairs: tuple[Pair, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Bounds:
    """`{low,high}`; `high` None is written `{low,}`."""

    low: int
    high: int | None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Selection:
    """What a hop follows: edge words (one is a plain hop), or every fitting edge type (`*`: no words)."""

    words: tuple[Word, ...]
    undirected: bool = False
    span: Span = _span()

    @property
    def wildcard(self) -> bool:
        return not self.words


@dataclass(frozen=True, slots=True)
class HopClause:
    """`$left $binding:selection{bounds} $right`"""

    left: Word
    selection: Selection
    right: Word
    binding: Word | None = None
    bounds: Bounds | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class BlockClause:
    """`not { … }` or `exists { … }`"""

    word: Literal["not", "exists"]
    clauses: tuple[Clause, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class FoldClause:
    """`count { … } > 2`, `sum($c.lag) { … } <= $most`"""

    fold: FoldName
    argument: Expression | None
    clauses: tuple[Clause, ...]
    sign: CompareSign
    right: Expression
    span: Span = _span()


Clause = Declaration | HopClause | BlockClause | FoldClause | Expression

# --- queries


@dataclass(frozen=True, slots=True)
class ParamType:
    """`word` is the type word, the element type of a list, or "Vector". What it means is for the checker."""

    form: Literal["scalar", "list", "vector"]
    word: str
    dimension: int = 0
    nullable: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ParamSyntax:
    name: Word
    type: ParamType
    description: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """`@mcp(tool_name: "…", expose: true)`; None where not written."""

    tool_name: str | None = None
    expose: bool | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One return item."""

    expression: Expression
    alias: Word | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Key:
    """One order key; `direction` None if neither word was written."""

    expression: Expression
    direction: Literal["asc", "desc"] | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ReadBody:
    clauses: tuple[Clause, ...]
    items: tuple[Item, ...]
    order: tuple[Key, ...] = ()
    limit: int | Variable | None = None
    limit_span: Span = _span()


@dataclass(frozen=True, slots=True)
class InsertSyntax:
    type_name: Word
    assignments: tuple[Pair, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class UpdateSyntax:
    type_name: Word
    assignments: tuple[Pair, ...]
    where: Expression
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class DeleteSyntax:
    type_name: Word
    where: Expression
    span: Span = _span()


WriteSyntax = InsertSyntax | UpdateSyntax | DeleteSyntax


@dataclass(frozen=True, slots=True)
class QuerySyntax:
    """`body` is a read, or the statements of a mutation. `span` reaches from `query` to the closing brace."""

    name: Word
    params: tuple[ParamSyntax, ...]
    body: ReadBody | tuple[WriteSyntax, ...]
    description: str | None = None
    instruction: str | None = None
    tool: ToolSettings | None = None
    span: Span = _span()
    body_span: Span = _span()


# --- files


@dataclass(frozen=True, slots=True)
class SettingLine:
    """`set name = value;`, or with value None `reset name;`, or with name "all" too `reset all;`.

    `kind` says how a value was written: `off` is a word, `"off"` a string.
    """

    name: Word
    value: int | str | None = None
    kind: Literal["integer", "string", "word", "reset"] = "reset"
    value_span: Span = _span()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ShowStatement:
    """`show name;` or `show all;` (name "all")."""

    name: Word
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class BranchStatement:
    """`branch create name from other`, `delete name`, `merge name into other`, `list`.

    `name` is None for `list`, `other` where it was not written.
    """

    verb: Literal["create", "delete", "merge", "list"]
    name: Word | None = None
    other: Word | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ExplainStatement:
    query: QuerySyntax
    span: Span = _span()


Statement = ShowStatement | BranchStatement | ExplainStatement


@dataclass(frozen=True, slots=True)
class QueryFile:
    """One source text: settings lines, then either queries or one statement."""

    text: str = field(compare=False)
    settings: tuple[SettingLine, ...] = ()
    queries: tuple[QuerySyntax, ...] = ()
    statement: Statement | None = None

    @property
    def declared(self) -> tuple[QuerySyntax, ...]:
        """All queries, one that is to be explained among them."""
        return (self.statement.query,) if isinstance(self.statement, ExplainStatement) else self.queries
