"""Type expressions of a schema -> value types. Refuses what is no type with `S006` (languages.md 4.2)."""

from __future__ import annotations

from typing import assert_never, cast

from omnigraph.lang.schema.faults import Faults, closest
from omnigraph.lang.schema.syntax import EnumSyntax, ListSyntax, ScalarSyntax, TypeSyntax, VectorSyntax, Word
from omnigraph.lang.types import Scalar, ValueType

VECTOR_DIMENSION_MAX = 2**31 - 1

_SCALARS = ", ".join(Scalar)
_BY_WORD = {str(of): of for of in Scalar}


def resolved_type(written: TypeSyntax, faults: Faults) -> ValueType:
    """The type that a property declares. Raises `InvalidSchema` (`S006`)."""
    match written.form:
        case ScalarSyntax(word):
            return ValueType("scalar", _scalar(word, faults), written.nullable)
        case ListSyntax(ScalarSyntax(word)):
            element = _scalar(word, faults)
            if element is Scalar.BLOB:
                raise faults.refusal("S006", written.span, "a list can't hold blobs", expected="a list of scalars")
            return ValueType("list", element, written.nullable)
        case ListSyntax():
            message = "a list holds scalars, no vectors, enums or lists"
            raise faults.refusal("S006", written.span, message, expected=f"a list of one of {_SCALARS}")
        case VectorSyntax(dimension):
            size = cast("int", dimension.value)
            if not 1 <= size <= VECTOR_DIMENSION_MAX:
                expected = f"a dimension from 1 to {VECTOR_DIMENSION_MAX}"
                raise faults.refusal("S006", dimension.span, "a vector of impossible size", expected=expected)
            return ValueType("vector", Scalar.F32, written.nullable, dimension=size)
        case EnumSyntax(variants):
            return ValueType("enum", Scalar.STRING, written.nullable, variants=_variants(variants, faults))
        case _:
            assert_never(written.form)


def _scalar(word: Word, faults: Faults) -> Scalar:
    if word.text in _BY_WORD:
        return _BY_WORD[word.text]
    expected = f"{_SCALARS}, Vector(N), enum(…) or a list"
    fix = closest(word.text, _BY_WORD)
    raise faults.refusal("S006", word.span, f"`{word.text}` is no type", expected=expected, fix=fix)


def _variants(words: tuple[Word, ...], faults: Faults) -> tuple[str, ...]:
    seen: set[str] = set()
    for word in words:
        if word.text in seen:
            raise faults.refusal("S006", word.span, f"variant `{word.text}` twice", expected="every variant once")
        seen.add(word.text)
    return tuple(sorted(seen))
