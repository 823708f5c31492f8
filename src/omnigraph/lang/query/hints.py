"""What to say where a text stops being a query: what could stand there, and the mistakes that people make most.

A hint is a better-worded `Q001`; it never makes a text legal. Without one the fault lists what the grammar would take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.lalr import END, Run, listed
from omnigraph.lang.lexical import Token, described, string_literal
from omnigraph.lang.query.faults import Fault, Replacement, nearest_name
from omnigraph.lang.query.lookahead import CALL_TERMINALS, KEYWORDS, PUNCTUATION
from omnigraph.lang.query.printer import expression_text
from omnigraph.lang.query.syntax import CALLS, RESERVED, Expression

_COMPARISONS = ("EQUAL", "NOT_EQUAL", "LT", "LE", "GT", "GE")
_VALUES = (
    *("VAR", "META", "NAME", "INT", "DEC", "STRING", "TRUE", "FALSE", "LPAR", "LSQB"),
    *sorted(set(CALL_TERMINALS.values())),
)
# Groups of terminals that one phrase stands for, if all of them are possible. The order is that of the message.
_PHRASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("a clause", ("VAR_DECL", "VAR_HOP", "NOT_BLOCK", "EXISTS_BLOCK", "FOLD_BLOCK", "NOT", *_VALUES)),
    ("an expression", ("NOT", *_VALUES)),
    ("a value", _VALUES),
    ("a comparison", _COMPARISONS),
)
_SPELLINGS: dict[str, str] = {
    **{terminal: f"`{sign}`" for sign, terminal in PUNCTUATION.items()},
    "BLOCK_OPEN": "`{`",
    "HOP_OPEN": "`(`",
    "NAME": "a name",
    "WORD": "a name",
    "ALIAS": "an alias",
    "EDGE": "an edge name",
    "FIELD": "a property name",
    "TYPE": "a type name",
    "VAR": "a variable",
    "META": "a system field",
    "INT": "an integer",
    "DEC": "a decimal",
    "STRING": "a string",
    "VECTOR": "`Vector(`",
    "INFIX": "`contains`",
    "ALL": "`all`",
    **{terminal: f"`{word}`" for word, terminal in KEYWORDS.items()},
    "DESCRIPTION": "`@description`",
    "INSTRUCTION": "`@instruction`",
    "MCP": "`@mcp`",
    "NEAREST": "`nearest(`",
    "BM25": "`bm25(`",
    END: "the end of the text",
}


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a parse stopped: the token at `index` has no place. `history` are the terminals of those before it."""

    tokens: Sequence[Token]
    index: int
    terminal: str
    history: Sequence[str]
    run: Run

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def before(self, steps: int = 1) -> str:
        """The terminal that stands `steps` before the token."""
        return self.history[-steps] if len(self.history) >= steps else ""


def fault_at(stop: Stop) -> Fault:
    """The parse error of a token that nothing legal begins with."""
    for hint in (
        _missing_parameters,
        _operator,
        _null,
        _chain,
        _reserved,
        _negated_in,
        _count_star,
        _block_inside,
        _block_joined,
    ):
        fault = hint(stop)
        if fault is not None:
            return fault
    words = wanted_words(stop.run.wanted() - _out_of_place(stop.history))
    literal = [word[1:-1] for word in words if word.startswith("`")]
    return Fault(
        "Q001",
        f"unexpected {described(stop.token)}",
        stop.token.span,
        listed(words) if words else None,
        literal[0] if len(literal) == len(words) == 1 else None,
    )


def unknown_call(token: Token) -> Fault:
    """A name before `(`, where a value can stand, that is no call."""
    near = nearest_name(token.text, CALLS)
    expected = "one of the calls " + ", ".join(f"`{name}`" for name in sorted(CALLS))
    edits = (Replacement(token.span, near),) if near else ()
    return Fault("Q001", f"there is no call `{token.text}`", token.span, expected, near, edits)


def wanted_words(wanted: set[str]) -> list[str]:
    """The terminals that could stand somewhere, in words."""
    rest, words = set(wanted), list[str]()
    for phrase, terminals in _PHRASES:
        if rest.issuperset(terminals):
            rest.difference_update(terminals)
            words.append(phrase)
    words += [spelling for terminal, spelling in _SPELLINGS.items() if terminal in rest]
    return list(dict.fromkeys(words))


def _out_of_place(history: Sequence[str]) -> set[str]:
    """What the grammar takes after another part of the file and "One file" (languages.md 6) does not."""
    queries, statements, settings = {"QUERY"}, {"SHOW", "BRANCH", "EXPLAIN"}, {"SET", "RESET"}
    if not statements.isdisjoint(history):
        return queries | statements | settings
    return statements | settings if "QUERY" in history else set()


def _missing_parameters(stop: Stop) -> Fault | None:
    if stop.history[-2:] != ["QUERY", "WORD"]:
        return None
    name = stop.tokens[stop.index - 1]
    end = Span(name.span.end, name.span.end)
    message = "a query declares its parameters, even none"
    return Fault("Q002", message, end, "`(`", f"query {name.text}()", (Replacement(end, "()"),), sure=True)


def _operator(stop: Stop) -> Fault | None:
    """`<>` and `==`, written together."""
    pair = (stop.before(), stop.terminal)
    written, meant = {("LT", "GT"): ("<>", "!="), ("EQUAL", "EQUAL"): ("==", "=")}.get(pair, ("", ""))
    if not written or stop.tokens[stop.index - 1].span.end != stop.token.span.start:
        return None
    span = Span(stop.tokens[stop.index - 1].span.start, stop.token.span.end)
    return Fault("Q001", f"there is no operator `{written}`", span, f"`{meant}`", meant, (Replacement(span, meant),))


def _null(stop: Stop) -> Fault | None:
    if stop.token.text != "null" or not stop.run.takes("NAME"):
        return None
    expected = "`is null` or `is not null`, the only tests for null"
    if stop.before() not in ("EQUAL", "NOT_EQUAL"):
        return Fault("Q001", "there is no null literal", stop.token.span, expected)
    left: Expression | list[Any] = stop.run.values[-2]
    if isinstance(
        left, list
    ):  # the parts of a block, which is no operand: whatever it is compared with, it is not null
        return Fault("Q001", "there is no null literal", stop.token.span, "a number or a parameter")
    test = "is null" if stop.before() == "EQUAL" else "is not null"
    edit = Replacement(Span(stop.tokens[stop.index - 1].span.start, stop.token.span.end), test)
    fix = f"{expression_text(left)} {test}"
    return Fault("Q001", "there is no null literal", stop.token.span, expected, fix, (edit,))


def _chain(stop: Stop) -> Fault | None:
    """A sign after a whole test, as in `1 < $x < 3`: what could go on with `and` can't go on with a comparison."""
    run = stop.run
    if stop.terminal not in _COMPARISONS or any(run.takes(sign) for sign in _COMPARISONS) or not run.takes("_AND"):
        return None
    return Fault("Q001", "comparisons do not chain", stop.token.span, "`and` between two comparisons")


def _reserved(stop: Stop) -> Fault | None:
    """A reserved word where only another name can stand."""
    word = stop.token.text
    if word not in RESERVED:
        return None
    if stop.run.takes("ALIAS"):
        return Fault("Q005", f"`{word}` is a reserved word and cannot be an alias", stop.token.span, "another alias")
    if stop.run.takes("EDGE") or _looks_like_edge(stop):
        fix = string_literal(word)
        message = f"`{word}` is a reserved word: an edge of that name is written as a string"
        return Fault("Q001", message, stop.token.span, f"`{fix}`", fix, (Replacement(stop.token.span, fix),))
    return None


def _looks_like_edge(stop: Stop) -> bool:
    """`$a <in> $b` was read as a comparison, since `in` is reserved."""
    following = stop.tokens[stop.index + 1].text if stop.index + 1 < len(stop.tokens) else ""
    return stop.before() == "LT" and stop.before(2) == "VAR" and following in (">", "|")


def _negated_in(stop: Stop) -> Fault | None:
    if stop.terminal != "_IN" or stop.before() != "NOT":
        return None
    expected = "`not (… in …)`: there is no `not in`"
    return Fault("Q001", "unexpected `in`", stop.token.span, expected)


def _count_star(stop: Stop) -> Fault | None:
    if stop.terminal != "STAR" or stop.history[-2:] != ["FOLD", "LPAR"]:
        return None
    return Fault("Q001", "there is no `count(*)`", stop.token.span, "a variable to count, as in `count($v)`")


_BLOCK_WORDS = ("exists", "not", "count", "sum", "avg", "min", "max")
_A_CLAUSE = "a block to be a clause of its own"


def _block_inside(stop: Stop) -> Fault | None:
    """The brace of a block where only a value can stand: after `not exists`, behind a comparison, in `return`."""
    word = stop.tokens[stop.index - 1] if stop.index else None
    if stop.token.text != "{" or word is None or word.text not in _BLOCK_WORDS:
        return None
    before = stop.tokens[stop.index - 2] if stop.index > 1 else None
    if word.text == "exists" and before is not None and before.text == "not":
        edit = Replacement(Span(before.span.start, word.span.end), "not")
        message = "`not exists { … }` is written `not { … }`"
        return Fault("Q001", message, stop.token.span, "`not {`", "not", (edit,), sure=True)
    message = f"`{word.text} {{ … }}` is a clause of the match block and no value"
    if word.text in ("exists", "not"):
        expected = f"{_A_CLAUSE}, not part of an expression"
    else:
        expected = f"{_A_CLAUSE}, its comparison after it: `{word.text} {{ … }} > 2`"
    return Fault("Q001", message, stop.token.span, expected)


def _block_joined(stop: Stop) -> Fault | None:
    """`and` or `or` after a block."""
    if stop.token.text not in ("and", "or") or stop.before() != "RBRACE" or not stop.run.takes("NOT_BLOCK"):
        return None
    message = f"a block can't be joined by `{stop.token.text}`"
    if stop.token.text == "and":
        edit = Replacement(stop.token.span, "")
        return Fault("Q001", message, stop.token.span, "the next clause: all clauses have to hold", None, (edit,))
    return Fault("Q001", message, stop.token.span, f"{_A_CLAUSE}: there is no `or` of blocks")
