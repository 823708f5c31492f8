"""Tokens: the lexical rules that `.pg` and `.gq` share (languages.md 2).

`Lexer(text, lexis).token_at(offset)` reads one token, whatever stands there; it keeps no state, so a parser may look
ahead, go back, or ask again with another rule (`variant_at`). It knows no keyword and no grammar: a word is a NAME or a
TYPE, and whether `limit` is a keyword is for the grammar to say. A character that begins no token is a token too, of
kind UNKNOWN: the parser refuses it like any other token in the wrong place and can say what would have been right.

What no grammar could mend is refused here, as `lexis.error` with code `lexis.code`: bytes that are not UTF-8, an
unclosed comment or string, an unknown escape, a decimal beyond `F64`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from omnigraph.lang.diagnostics import Diagnostic, Position, SourceText, Span

BYTE_ORDER_MARK = "\ufeff"


class TokenKind(StrEnum):
    """Kinds of tokens. The kind of punctuation is PUNCT and its text says which; END stands after the last token."""

    NAME = "NAME"
    TYPE = "TYPE"
    VAR = "VAR"
    META = "META"
    INT = "INT"
    DEC = "DEC"
    STRING = "STRING"
    PUNCT = "PUNCT"
    VARIANT = "VARIANT"
    UNKNOWN = "UNKNOWN"
    END = "END"


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is the token as written (`$v`, `@id`, `"text"`), `span` its place in code points."""

    kind: TokenKind
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Lexis:
    """What the two languages do not share: the code of a syntax error, the error's class, the punctuation.

    `code` is "S001" or "Q001", `error` is `InvalidSchema` or `InvalidQuery`. `punctuation` needs no order: the longest
    that fits is taken.
    """

    code: str
    error: Callable[[Diagnostic], Exception]
    punctuation: tuple[str, ...]


_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
# A sign belongs to a number unless something that could end an operand touches it from the left.
_SIGN = r"""(?:(?<!\w|["')\]}])-)?"""
_TOKEN_FORMS = (
    ("NAME", r"[a-z_][A-Za-z0-9_]*"),
    ("TYPE", r"[A-Z][A-Za-z0-9_]*"),
    ("VAR", r"\$[a-z_][A-Za-z0-9_]*"),
    ("META", r"@[a-z_][A-Za-z0-9_]*"),
    ("DEC", _SIGN + r"[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)"),
    ("INT", _SIGN + r"[0-9]+"),
    ("STRING", r'"[^"\\]*+(?:\\["\\nrt][^"\\]*+)*+"'),
)
_VARIANT = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_INTEGER_DIGITS_MAX = 400


class Lexer:
    """Reads tokens of one text. Raises `lexis.error` for what no grammar could mend, nothing else."""

    def __init__(self, text: str, lexis: Lexis) -> None:
        self.text = text
        self.source = SourceText(text)
        self.lexis = lexis
        self._token = _token_pattern(lexis.punctuation)

    def token_at(self, offset: int) -> Token:
        """The next token at or after a code-point offset, white space and comments skipped; END at the end."""
        start = self._skip_blank(offset)
        if start == len(self.text):
            return Token(TokenKind.END, "", Span(start, start))
        match = self._token.match(self.text, start)
        if match is None or match.lastgroup is None:
            if self.text[start] == '"':
                raise self._broken_string(start)
            return Token(TokenKind.UNKNOWN, self.text[start], Span(start, start + 1))
        token = Token(TokenKind(match.lastgroup), match[0], Span(start, match.end()))
        if token.kind is TokenKind.DEC and math.isinf(float(token.text)):
            raise self.refusal(token.span, f"`{_shortened(token.text)}` is beyond the range of F64")
        return token

    def variant_at(self, offset: int) -> Token:
        """As `token_at`, where the grammar wants an enum variant: `laid-up`, `2nd`."""
        start = self._skip_blank(offset)
        match = _VARIANT.match(self.text, start)
        if match is None:
            return self.token_at(start)
        return Token(TokenKind.VARIANT, match[0], Span(start, match.end()))

    def tokens(self) -> Iterator[Token]:
        """All tokens, END last."""
        offset = 0
        while True:
            token = self.token_at(offset)
            yield token
            if token.kind is TokenKind.END:
                return
            offset = token.span.end

    def refusal(self, span: Span, message: str, *, expected: str | None = None, fix: str | None = None) -> Exception:
        """The syntax error of this language at a place, to be raised."""
        position, end = self.source.positions(span)
        line = self.source.line(position)
        return self.lexis.error(_syntax_error(self.lexis.code, message, position, end, expected, fix, line))

    def _skip_blank(self, offset: int) -> int:
        if offset == 0 and self.text.startswith(BYTE_ORDER_MARK):
            offset = 1
        match = _BLANK.match(self.text, offset)
        end = offset if match is None else match.end()
        if self.text.startswith("/*", end):
            raise self.refusal(Span(end, end + 2), "this comment is never closed", expected="`*/`")
        return end

    def _broken_string(self, start: int) -> Exception:
        """Why no string begins at the quote at `start`: an escape that is none, or no closing quote."""
        for match in re.compile(r'"|\\(?:["\\nrt]|(.?))', re.DOTALL).finditer(self.text, start + 1):
            if match[1]:
                span = Span(match.start(), match.end())
                return self.refusal(
                    span, f"`{_shortened(match[0])}` is no escape", expected=r"`\"`, `\\`, `\n`, `\r` or `\t`"
                )
            if match[1] is not None:  # a backslash is the last character
                break
        return self.refusal(Span(start, start + 1), "this string is never closed", expected='`"`')


def decode_source(source: bytes | str, lexis: Lexis) -> str:
    """The text of a source. A byte order mark stays in the text, so that byte offsets are those of the exact source;
    the lexer skips it.

    Raises `lexis.error` at the first byte (of a `str`: the first lone surrogate) that is not UTF-8.
    """
    if isinstance(source, bytes):
        try:
            return source.decode("utf-8")
        except UnicodeDecodeError as error:
            before = source[: error.start].decode("utf-8")
            position = SourceText(before).position(len(before))
    else:
        try:
            source.encode("utf-8")
        except UnicodeEncodeError as error:
            before = source[: error.start]
            position = SourceText(before).position(len(before))
        else:
            return source
    end = Position(position.line, position.column + 1, position.byte + 1)
    message = f"the byte at offset {position.byte} is not UTF-8"
    raise lexis.error(_syntax_error(lexis.code, message, position, end, "text in UTF-8", None)) from None


def string_value(text: str) -> str:
    r"""The value of a STRING token: quotes taken off, escapes resolved.

    >>> string_value(r'"a\tb"')
    'a\tb'
    """
    return _ESCAPE.sub(lambda match: _ESCAPED[match[1]], text[1:-1])


def string_literal(value: str) -> str:
    """The STRING token of a value: `string_value(string_literal(v)) == v`."""
    return '"' + re.sub(r'["\\\n\r\t]', lambda match: _ESCAPES[match[0]], value) + '"'


def integer_value(text: str) -> int:
    """The value of an INT token. Beyond 400 digits it reads as ±10**400, further from zero than any type reaches."""
    digits = text.lstrip("-").lstrip("0")
    magnitude = int(digits or "0") if len(digits) <= _INTEGER_DIGITS_MAX else 10**_INTEGER_DIGITS_MAX
    return -magnitude if text.startswith("-") else magnitude


def decimal_value(text: str) -> float:
    """The value of a DEC token: the nearest F64."""
    return float(text)


def described(token: Token) -> str:
    """A token in words, for messages: "`}`", "end of the text", "U+00A0 (NO-BREAK SPACE), which is not white space here"."""
    match token.kind:
        case TokenKind.END:
            return "end of the text"
        case TokenKind.UNKNOWN if token.text == "-":
            return "`-`, which begins no number here"
        case TokenKind.UNKNOWN if not token.text.isprintable() or token.text.isspace():
            name = unicodedata.name(token.text, "a control character")
            tail = ", which is not white space here" if token.text.isspace() else ""
            return f"U+{ord(token.text):04X} ({name}){tail}"
        case _:
            return f"`{_shortened(token.text)}`"


def _shortened(text: str) -> str:
    """One line of at most 40 characters."""
    line = text.replace("\n", " ").replace("\r", " ")
    return line if len(line) <= 40 else line[:39] + "…"


def _syntax_error(
    code: str,
    message: str,
    position: Position,
    end: Position,
    expected: str | None,
    fix: str | None,
    line: str | None = None,
) -> Diagnostic:
    text = f"parse error: {code}: {message}"
    return Diagnostic(code, "parse", text, position=position, end=end, expected=expected, fix=fix, line=line)


@lru_cache(maxsize=8)
def _token_pattern(punctuation: tuple[str, ...]) -> re.Pattern[str]:
    signs = "|".join(re.escape(sign) for sign in sorted(punctuation, key=len, reverse=True))
    forms = [*_TOKEN_FORMS, ("PUNCT", signs)]
    return re.compile("|".join(f"(?P<{kind}>{form})" for kind, form in forms))
