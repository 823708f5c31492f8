"""Which terminal of gq.lark a token is: the choices of languages.md 6 that one token does not settle.

A word is a keyword only where the grammar takes it, so the same word is a property here and a keyword there. Where both
could stand, and where a variable begins a hop, a declaration or an expression, the tokens that follow decide, in the
order that the chapter lists. Nothing is refused here: a token that fits nowhere gets the terminal it looks most like,
and the parse says what would have been right.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.lang.lalr import END, Run
from omnigraph.lang.lexical import Token, TokenKind
from omnigraph.lang.query.syntax import FOLDS, RESERVED, SEARCH_CALLS, TEXT_TESTS

PUNCTUATION = {
    "{": "LBRACE",
    "}": "RBRACE",
    "(": "LPAR",
    ")": "RPAR",
    "[": "LSQB",
    "]": "RSQB",
    ":": "_COLON",
    ",": "_COMMA",
    ".": "_DOT",
    "|": "_PIPE",
    "*": "STAR",
    "=": "EQUAL",
    "!=": "NOT_EQUAL",
    "<": "LT",
    "<=": "LE",
    ">": "GT",
    ">=": "GE",
    ";": "SEMI",
    "?": "QUESTION",
}
# Words that are keywords where the grammar takes their terminal.
KEYWORDS = {
    **{word: f"_{word.upper()}" for word in ("and", "or", "is", "in", "as", "from", "into", "where")},
    **{word: word.upper() for word in ("not", "null", "true", "false", "query", "match", "return", "order", "limit")},
    **{word: word.upper() for word in ("asc", "desc", "insert", "update", "set", "delete", "tool_name", "expose")},
    **{word: word.upper() for word in ("branch", "create", "merge", "list", "explain", "show", "reset")},
}
# Words that are calls before `(`.
CALL_TERMINALS = {
    "now": "NOW",
    "date": "DATE",
    "datetime": "DATE",
    **dict.fromkeys(FOLDS, "FOLD"),
    **dict.fromkeys(TEXT_TESTS, "TEXT_TEST"),
    **dict.fromkeys(SEARCH_CALLS, "SEARCH"),
    **{word: word.upper() for word in ("fuzzy", "nearest", "bm25", "rrf")},
}
_BLOCK_TERMINALS = {"not": "NOT_BLOCK", "exists": "EXISTS_BLOCK", **dict.fromkeys(FOLDS, "FOLD_BLOCK")}
_HEADER_TERMINALS = {"@description": "DESCRIPTION", "@instruction": "INSTRUCTION", "@mcp": "MCP"}
_CLOSING = {"(": ")", "{": "}"}


class Lookahead:
    """The tokens of one text, END last, and where their brackets close."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._close = _matching_brackets(tokens)

    def terminal(self, index: int, run: Run) -> str:
        """The terminal of the token at `index`, given all before it have been fed to `run`."""
        token = self._tokens[index]
        match token.kind:
            case TokenKind.END:
                return END
            case TokenKind.PUNCT:
                if token.text == "{" and run.takes("BLOCK_OPEN"):
                    return "BLOCK_OPEN"
                if token.text == "(" and run.takes("HOP_OPEN"):
                    return "HOP_OPEN"
                return PUNCTUATION[token.text]
            case TokenKind.NAME:
                return self._word(index, run)
            case TokenKind.VAR:
                return self._variable(index, run)
            case TokenKind.META:
                terminal = _HEADER_TERMINALS.get(token.text)
                return terminal if terminal is not None and run.takes(terminal) else "META"
            case TokenKind.TYPE if token.text == "Vector" and self._text(index + 1) == "(" and run.takes("VECTOR"):
                return "VECTOR"
            case _:
                return str(token.kind)

    def before_parenthesis(self, index: int) -> bool:
        return self._text(index + 1) == "("

    def _word(self, index: int, run: Run) -> str:
        word, following = self._tokens[index].text, self._text(index + 1)
        if word == "all" and following != "." and run.takes("ALL"):
            return "ALL"
        if run.takes("WORD"):
            return "WORD"
        if following == ":" and run.takes("FIELD"):
            return "FIELD"
        opening = self._call_or_block(word, index, run)
        if opening is not None:
            return opening
        if word in TEXT_TESTS and run.takes("INFIX"):
            return "INFIX"
        keyword = KEYWORDS.get(word)
        if keyword is not None and run.takes(keyword):
            return keyword
        if word not in RESERVED:
            for role in ("NAME", "ALIAS", "EDGE"):
                if run.takes(role):
                    return role
        if run.takes("FIELD"):  # the word is in its place, the colon after it is missing
            return "FIELD"
        return keyword or "NAME"

    def _call_or_block(self, word: str, index: int, run: Run) -> str | None:
        following = self._text(index + 1)
        block = _BLOCK_TERMINALS.get(word)
        if block is not None and following == "{":
            return block if run.takes(block) else None
        if following != "(":
            return None
        if block is not None and self._block_follows_argument(index + 1) and run.takes(block):
            return block
        call = CALL_TERMINALS.get(word)
        # `contains (` and `starts_with (` are calls wherever they stand; other words may be names there.
        return call if call is not None and (word in TEXT_TESTS or run.takes(call)) else None

    def _block_follows_argument(self, index: int) -> bool:
        """Whether the parenthesis that opens at `index` closes right before a `{`. (`not (` opens an operand.)"""
        return (
            self._tokens[index - 1].text in FOLDS and self._text(self._close.get(index, len(self._tokens)) + 1) == "{"
        )

    def _variable(self, index: int, run: Run) -> str:
        if not run.takes("VAR_HOP"):  # no clause can begin here
            return "VAR"
        if self._text(index + 1) == ":":
            return "VAR_DECL"
        if self._kind(index + 1) is TokenKind.VAR and self._text(index + 2) == ":":
            return "VAR" if self._kind(index + 3) is TokenKind.TYPE else "VAR_HOP"
        return "VAR_HOP" if self._hop_follows(index + 1) else "VAR"

    def _hop_follows(self, index: int) -> bool:
        """Whether a hop's selection stands at `index`, the token after a variable that begins a clause."""
        match self._kind(index), self._text(index):
            case TokenKind.STRING, _:
                return self._end_follows(index + 1)
            case TokenKind.NAME, word:
                if word in RESERVED:
                    return False
                if word in TEXT_TESTS and self._text(index + 1) != "{":
                    return self._kind(index + 1) is TokenKind.VAR and self._text(index + 2) != "."
                return self._end_follows(index + 1, strict=word in _BLOCK_TERMINALS)
            case TokenKind.PUNCT, "*":
                return True
            case TokenKind.PUNCT, "(":
                return self._is_edge(index + 1) and self._text(index + 2) == "|"
            case TokenKind.PUNCT, "<":
                return self._undirected_follows(index + 1)
            case _:
                return False

    def _end_follows(self, index: int, *, strict: bool = False) -> bool:
        """Whether a variable, perhaps after bounds, stands at `index`.

        Bounds that are not well formed count too, so that the parse can say what is wrong with them, unless `strict`:
        `$flag exists { … } $v: Vessel` is no hop.
        """
        if self._text(index) == "{":
            if strict and not (self._kind(index + 1) is TokenKind.INT and self._text(index + 2) == ","):
                return False
            if not strict and self._kind(index + 1) is TokenKind.INT:
                return True
            if index not in self._close:
                return False
            index = self._close[index] + 1
        return self._kind(index) is TokenKind.VAR

    def _undirected_follows(self, index: int) -> bool:
        if self._text(index) == "*":
            return self._text(index + 1) == ">"
        while self._is_edge(index) and self._text(index + 1) == "|":
            index += 2
        return self._is_edge(index) and self._text(index + 1) == ">"

    def _is_edge(self, index: int) -> bool:
        return self._kind(index) in (TokenKind.NAME, TokenKind.STRING)

    def _kind(self, index: int) -> TokenKind:
        return self._tokens[index].kind if index < len(self._tokens) else TokenKind.END

    def _text(self, index: int) -> str:
        return self._tokens[index].text if index < len(self._tokens) else ""


def _matching_brackets(tokens: Sequence[Token]) -> dict[int, int]:
    """For every `(` and `{` that is closed, the index of its closing bracket."""
    close: dict[int, int] = {}
    open_brackets: list[int] = []
    for index, token in enumerate(tokens):
        if token.text in _CLOSING:
            open_brackets.append(index)
        elif token.text in (")", "}") and open_brackets:
            if _CLOSING[tokens[open_brackets[-1]].text] != token.text:
                break  # the parse will stop here or before
            close[open_brackets.pop()] = index
    return close
