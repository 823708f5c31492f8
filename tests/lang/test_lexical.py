"""Tokens are the same in both languages (languages.md 2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InvalidQuery
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.lexical import (
    Lexer,
    Lexis,
    decimal_value,
    decode_source,
    described,
    integer_value,
    string_literal,
    string_value,
)

LEXIS = Lexis(
    "Q001", InvalidQuery, ("{", "}", "(", ")", "[", "]", ":", ",", ".", "..", "<", ">", "<=", ">=", "=", "->")
)


def spelled(text: str) -> list[str]:
    return [f"{token.kind} {token.text}" for token in Lexer(text, LEXIS).tokens()][:-1]


def refused(text: str | bytes) -> Diagnostic:
    with pytest.raises(InvalidQuery) as caught:
        list(Lexer(decode_source(text, LEXIS), LEXIS).tokens())
    assert isinstance(caught.value.diagnostic, Diagnostic)
    return caught.value.diagnostic


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("limit10 querye nothing", ["NAME limit10", "NAME querye", "NAME nothing"]),
        ("_a aB9_ Ab_9", ["NAME _a", "NAME aB9_", "TYPE Ab_9"]),
        ("$v $_ @id @src", ["VAR $v", "VAR $_", "META @id", "META @src"]),
        ("$ v", ["UNKNOWN $", "NAME v"]),
        ("$V", ["UNKNOWN $", "TYPE V"]),
        ("@ id", ["UNKNOWN @", "NAME id"]),
        ("0..150", ["INT 0", "PUNCT ..", "INT 150"]),
        ("-10..-3", ["INT -10", "PUNCT ..", "INT -3"]),
        ("1.5..2.5", ["DEC 1.5", "PUNCT ..", "DEC 2.5"]),
        ("1. .5", ["INT 1", "PUNCT .", "PUNCT .", "INT 5"]),
        ("5-3", ["INT 5", "UNKNOWN -", "INT 3"]),
        ("a-5", ["NAME a", "UNKNOWN -", "INT 5"]),
        ("a_-5", ["NAME a_", "UNKNOWN -", "INT 5"]),
        ('"x"-5', ['STRING "x"', "UNKNOWN -", "INT 5"]),
        (
            ")-5 ]-5 }-5",
            ["PUNCT )", "UNKNOWN -", "INT 5", "PUNCT ]", "UNKNOWN -", "INT 5", "PUNCT }", "UNKNOWN -", "INT 5"],
        ),
        ("a -5", ["NAME a", "INT -5"]),
        ("(-5,-5>-5=-5", ["PUNCT (", "INT -5", "PUNCT ,", "INT -5", "PUNCT >", "INT -5", "PUNCT =", "INT -5"]),
        ("/**/-5", ["INT -5"]),
        ("- 5", ["UNKNOWN -", "INT 5"]),
        ("--5", ["UNKNOWN -", "INT -5"]),
        ("1e5 1E+5 -1.5e-5 1e 1.5e", ["DEC 1e5", "DEC 1E+5", "DEC -1.5e-5", "INT 1", "NAME e", "DEC 1.5", "NAME e"]),
        ("<=<->", ["PUNCT <=", "PUNCT <", "PUNCT ->"]),
        ("a// no /* b\nc", ["NAME a", "NAME c"]),
        ("a/* // */b/***/c", ["NAME a", "NAME b", "NAME c"]),
        ("a\t\r\n b", ["NAME a", "NAME b"]),
        ("a\u00a0b", ["NAME a", "UNKNOWN \u00a0", "NAME b"]),
        ("a\u000cb", ["NAME a", "UNKNOWN \u000c", "NAME b"]),
        ("é", ["UNKNOWN é"]),
        ("aé", ["NAME a", "UNKNOWN é"]),
        ("\u0661", ["UNKNOWN \u0661"]),
        ("a+b", ["NAME a", "UNKNOWN +", "NAME b"]),
        ("\ufeffa", ["NAME a"]),
        (" \ufeffa", ["UNKNOWN \ufeff", "NAME a"]),
        ('"a\nb // c" d', ['STRING "a\nb // c"', "NAME d"]),
        ('"" "\\"" "\\\\"', ['STRING ""', 'STRING "\\""', 'STRING "\\\\"']),
        ("", []),
    ],
)
def test_a_text_has_these_tokens(text: str, tokens: list[str]) -> None:
    assert spelled(text) == tokens


def test_a_variant_is_a_token_only_when_asked_for() -> None:
    lexer = Lexer(" /* */ laid-up, 2nd -x", LEXIS)
    assert [lexer.variant_at(0).text, lexer.variant_at(15).text, lexer.variant_at(19).text] == ["laid-up", "2nd", "-x"]
    assert lexer.token_at(0).text == "laid"


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ('a "b', 2, 3),
        ('a "b\\', 2, 3),
        ('a "b\\"', 2, 3),
        ('"a\\u"', 2, 4),
        ('"\\\n"', 1, 3),
        ("a /* b", 2, 4),
        ("/*/", 0, 2),
        ("1e309", 0, 5),
        ("-1e309", 0, 6),
    ],
)
def test_what_no_grammar_mends_is_refused_at_its_place(text: str, start: int, end: int) -> None:
    found = refused(text)
    assert found.code == "Q001"
    assert found.position is not None
    assert found.end is not None
    assert (found.position.byte, found.end.byte) == (start, end)
    assert "\n" not in found.message


def test_bytes_that_are_not_utf8_are_refused_at_their_offset() -> None:
    for source, offset in ((b"ab\xff", 2), (b"\xef\xbb\xbf\xc3", 3), ("é\n".encode() + b"\xed\xa0\x80", 3)):
        found = refused(source)
        assert found.position is not None
        assert (found.code, found.position.byte) == ("Q001", offset)


def test_a_byte_order_mark_stays_in_the_text_so_that_offsets_are_those_of_the_source() -> None:
    text = decode_source(b"\xef\xbb\xbfa", LEXIS)
    position = Lexer(text, LEXIS).source.position(1)
    assert (position.line, position.column, position.byte) == (1, 1, 3)


@given(st.text())
def test_a_string_literal_reads_back(value: str) -> None:
    literal = string_literal(value)
    assert string_value(literal) == value
    (token,) = list(Lexer(literal, LEXIS).tokens())[:-1]
    assert token.text == literal


def test_escapes_mean_what_they_are() -> None:
    assert string_value('"\\"\\\\\\n\\r\\t"') == '"\\\n\r\t'


def test_leading_zeros_mean_nothing_and_endless_digits_are_beyond_every_type() -> None:
    assert [integer_value(text) for text in ("007", "-0010", "000")] == [7, -10, 0]
    assert integer_value("9" * 10_000) > 2**1024
    assert integer_value("-" + "9" * 10_000) < -(2**1024)
    assert integer_value("0" * 10_000 + "5") == 5


def test_a_decimal_is_the_nearest_f64() -> None:
    assert [decimal_value(text) for text in ("0.1", "1e2", "-00.5")] == [0.1, 100.0, -0.5]


@given(st.text(alphabet=st.sampled_from(list('aA0-_.$@"\\/*{}[],\n é\u00a0')), max_size=30))
def test_tokens_and_blanks_are_the_whole_text(text: str) -> None:
    try:
        tokens = list(Lexer(text, LEXIS).tokens())
    except InvalidQuery:
        return
    ends = [0, *(token.span.end for token in tokens)]
    for token, end in zip(tokens, ends, strict=False):
        assert token.text == text[token.span.start : token.span.end]
        between = text[end : token.span.start]
        assert not between or next(Lexer(between, LEXIS).tokens()).text == ""
        assert described(token)
    assert tokens[-1].span.end == len(text)
