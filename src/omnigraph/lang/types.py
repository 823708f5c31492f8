"""The value types that both languages share (languages.md 4.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal


class Scalar(StrEnum):
    STRING = "String"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATE = "Date"
    DATETIME = "DateTime"
    BLOB = "Blob"


INTEGERS = frozenset({Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64})
FLOATS = frozenset({Scalar.F32, Scalar.F64})
NUMBERS = INTEGERS | FLOATS

INTEGER_RANGE: dict[Scalar, tuple[int, int]] = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a property, parameter or expression.

    `scalar` is the element type of a list, String of an enum, F32 of a vector. `variants` of an enum are sorted (a set);
    `dimension` is that of a vector.
    """

    kind: Literal["scalar", "list", "vector", "enum"]
    scalar: Scalar
    nullable: bool = False
    variants: tuple[str, ...] = ()
    dimension: int = 0

    def spelling(self) -> str:
        """As a schema writes it: `String?`, `[I32]`, `Vector(3)`, `enum(a, b)`."""
        mark = "?" if self.nullable else ""
        match self.kind:
            case "scalar":
                return f"{self.scalar}{mark}"
            case "list":
                return f"[{self.scalar}]{mark}"
            case "vector":
                return f"Vector({self.dimension}){mark}"
            case "enum":
                return f"enum({', '.join(self.variants)}){mark}"

    def with_nullable(self, nullable: bool) -> ValueType:
        return self if nullable == self.nullable else replace(self, nullable=nullable)

    @property
    def is_text(self) -> bool:
        """String or enum, not a list."""
        return self.kind == "enum" or (self.kind == "scalar" and self.scalar is Scalar.STRING)

    @property
    def is_number(self) -> bool:
        return self.kind == "scalar" and self.scalar in NUMBERS


def scalar(of: Scalar, nullable: bool = False) -> ValueType:
    return ValueType("scalar", of, nullable)


STRING = scalar(Scalar.STRING)
BOOL = scalar(Scalar.BOOL)
I64 = scalar(Scalar.I64)
F64 = scalar(Scalar.F64)
DATETIME = scalar(Scalar.DATETIME)
