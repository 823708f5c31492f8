"""`.gq` text -> syntax tree. Knows the form of queries and none of their meaning: every fault here is a parse error.

The first place where the text stops being a query file is the one reported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from omnigraph.errors import InvalidQuery
from omnigraph.lang.diagnostics import SourceText, Span
from omnigraph.lang.lalr import END, Grammar, Run
from omnigraph.lang.lexical import Lexer, Lexis, Token, TokenKind, decode_source, integer_value
from omnigraph.lang.query.build import FileBuilder
from omnigraph.lang.query.faults import Fault, invalid_query
from omnigraph.lang.query.hints import Stop, fault_at, unknown_call
from omnigraph.lang.query.lookahead import PUNCTUATION, Lookahead
from omnigraph.lang.query.syntax import QueryFile, QuerySyntax, SettingLine

NESTING_MAX = 100
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**64 - 1

QUERY_LEXIS = Lexis("Q001", InvalidQuery, tuple(PUNCTUATION))

_OPENING = frozenset({"BLOCK_OPEN", "LPAR", "LSQB", "LBRACE", "HOP_OPEN"})
_NESTING = frozenset({"BLOCK_OPEN", "LPAR", "LSQB"})
_CLOSING = frozenset({"RBRACE", "RPAR", "RSQB"})
_STATEMENTS = frozenset({"SHOW", "BRANCH", "EXPLAIN"})
_SETTING_WORDS = frozenset({"SET", "RESET"})


def parse_file(source: str | bytes) -> QueryFile:
    """The syntax tree of a query file: settings lines, then queries or one statement; or nothing at all.

    Raises `InvalidQuery` with `Q001`, `Q002`, `Q004` or `Q005` at the first fault. Whether settings exist and query
    names differ is for the check to say.
    """
    text = decode_source(source, QUERY_LEXIS)
    parse = _Parse(Lexer(text, QUERY_LEXIS))
    try:
        entries = parse.entries()
    except Fault as fault:
        raise invalid_query(fault, SourceText(text), parse.query) from None
    statements = [entry for entry in entries if not isinstance(entry, (SettingLine, QuerySyntax))]
    return QueryFile(
        text=text,
        settings=tuple(entry for entry in entries if isinstance(entry, SettingLine)),
        queries=tuple(entry for entry in entries if isinstance(entry, QuerySyntax)),
        statement=statements[0] if statements else None,
    )


@cache
def _grammar() -> Grammar:
    """Loading takes some tenths of a second, so it happens with the first query and once."""
    return Grammar(__package__ or "omnigraph.lang.query", "gq.lark", {}, builder=FileBuilder())


def _check_integer(token: Token) -> None:
    if not INTEGER_MIN <= integer_value(token.text) <= INTEGER_MAX:
        message = "this integer is outside -2^63 to 2^64-1"
        raise Fault("Q001", message, token.span, "an integer that some type can hold")


@dataclass
class _Parse:
    """One run over one text."""

    lexer: Lexer
    query: str | None = None  # the name of the query that is being read
    _history: list[str] = field(default_factory=list[str])  # terminals fed so far
    _brackets: list[bool] = field(default_factory=list[bool])  # the open ones; True if it counts as nesting
    _seen: str | None = None  # what the file holds beside settings: "query" or "statement"

    def entries(self) -> list[Any]:
        tokens, broken = self._tokens()
        lookahead, run = Lookahead(tokens), _grammar().run()
        for index, token in enumerate(tokens):
            if broken is not None and token.kind is TokenKind.END:
                raise broken
            terminal = lookahead.terminal(index, run)
            if not run.takes(terminal):
                if not self._brackets and run.takes("QUERY"):  # the last query is complete
                    self.query = None
                raise fault_at(Stop(tokens, index, terminal, self._history, run))
            if terminal == "NAME" and lookahead.before_parenthesis(index):
                raise unknown_call(token)
            self._keep_place(terminal, token, run)
            self._keep_depth(terminal, token)
            if terminal == "INT" and self.query is not None:
                _check_integer(token)
            result = run.feed(terminal, token)
            self._history.append(terminal)
            if terminal == END:
                return cast("list[Any]", result)
        raise AssertionError("the tokens of a text end with END")

    def _tokens(self) -> tuple[list[Token], InvalidQuery | None]:
        """All tokens, and the fault that ended them early: it counts only if nothing before it is at fault."""
        tokens: list[Token] = []
        try:
            for token in self.lexer.tokens():
                tokens.append(token)
        except InvalidQuery as broken:
            end = len(self.lexer.text)
            return [*tokens, Token(TokenKind.END, "", Span(end, end))], broken
        return tokens, None

    def _keep_place(self, terminal: str, token: Token, run: Run) -> None:
        """Settings come first; then stand queries, or one statement (languages.md 6, "One file")."""
        if self._history[-1:] == ["QUERY"]:
            self.query = token.text
        if self._brackets or not run.takes("QUERY"):
            return
        if self._history[-1:] == ["EXPLAIN"]:  # the query that is explained
            return
        self.query = None
        if terminal in _SETTING_WORDS:
            if self._seen is not None:
                raise Fault("Q004", f"a settings line after a {self._seen}", token.span, "settings lines first")
        elif terminal == "QUERY":
            if self._seen == "statement":
                raise Fault("Q004", "a query beside a statement", token.span, "one statement, alone in its text")
            self._seen = "query"
        elif terminal in _STATEMENTS:
            if self._seen is not None:
                message = "a second statement" if self._seen == "statement" else "a statement beside a query"
                raise Fault("Q004", message, token.span, "one statement, alone in its text")
            self._seen = "statement"

    def _keep_depth(self, terminal: str, token: Token) -> None:
        if terminal in _OPENING:
            self._brackets.append(terminal in _NESTING)
            if terminal in _NESTING and sum(self._brackets) > NESTING_MAX:
                message = f"blocks, parentheses and lists nest more than {NESTING_MAX} deep"
                raise Fault("Q001", message, token.span, f"at most {NESTING_MAX} levels")
        elif terminal in _CLOSING:
            self._brackets.pop()
