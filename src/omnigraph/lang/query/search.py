"""Search and ranking calls (languages.md 12): what their operands are. Where such a call may stand is for
search_places.py to say, and what its words and vectors mean for the engine.
"""

from __future__ import annotations

from typing import Literal, cast

from omnigraph.lang.query.faults import Fault, type_fault
from omnigraph.lang.query.printer import expression_text
from omnigraph.lang.query.scope import Scope
from omnigraph.lang.query.syntax import Call
from omnigraph.lang.query.typed import Bm25, Constant, Expr, Fused, Nearest, Param, PropertyRef, TextSearch
from omnigraph.lang.query.value_types import boolean, spelled, value_type
from omnigraph.lang.types import F64, I64, INTEGERS, NUMBERS, Scalar, ValueType, scalar
from omnigraph.lang.values import rounded_to_f32

SEARCH_EDITS_MAX = 2
"""The most edits that `fuzzy` may allow."""

_SCORE = scalar(Scalar.F32)
_K = Constant(60, I64)

_Code = Literal["T15", "T19", "T20"]


def typed_search(node: Call, parts: list[Expr], scope: Scope) -> Expr:
    """The typed form of a search or ranking call whose arguments are typed. Raises `Fault`: `T23`, then `T15`, `T19` or
    `T20` for the first operand at fault, then `T27`.
    """
    match node.name:
        case "search" | "match_text" | "fuzzy":
            return _predicate(node, node.name, parts, scope)
        case "bm25":
            text = _text(node, parts[0], "T20", scope)
            query = _words(node, parts[1], "T20")
            _require_index(node, text, scope)
            return Bm25(text, query, _SCORE)
        case "nearest":
            vector = _vector(node, parts[0], scope)
            return Nearest(vector, _target(node, parts[1], vector.type.dimension), _SCORE)
        case "rrf":
            first, second = cast("list[Nearest | Bm25]", parts[:2])  # the grammar takes no others
            return Fused(first, second, parts[2] if len(parts) > 2 else _K, F64)
        case _:
            raise AssertionError(f"{node.name} is no search call")


def is_integer(expr: Expr) -> bool:
    """Whether an operand is a literal or parameter of an integer type."""
    return isinstance(expr, Constant | Param) and expr.type.kind == "scalar" and expr.type.scalar in INTEGERS


def _predicate(
    node: Call, call: Literal["search", "match_text", "fuzzy"], parts: list[Expr], scope: Scope
) -> TextSearch:
    code: _Code = "T20" if call == "match_text" else "T19"
    text = _text(node, parts[0], code, scope)
    query = _words(node, parts[1], code)
    edits = _edits(node, parts[2]) if len(parts) > 2 else None
    _require_index(node, text, scope)
    return TextSearch(call, text, query, boolean(text, query), edits)


# --- operands


def _text(node: Call, part: Expr, code: _Code, scope: Scope) -> PropertyRef:
    wanted = "a String property of a node variable"
    found = _node_property(node, part, scope, code, wanted)
    if found.type.kind == "scalar" and found.type.scalar is Scalar.STRING:
        return found
    raise _operand(node, 0, code, f"searches a String, not `{spelled(part)}`", wanted)


def _vector(node: Call, part: Expr, scope: Scope) -> PropertyRef:
    wanted = "a Vector property of a node variable"
    found = _node_property(node, part, scope, "T15", wanted)
    if found.type.kind == "vector":
        return found
    raise _operand(node, 0, "T15", f"ranks vectors, not `{spelled(part)}`", wanted)


def _node_property(node: Call, part: Expr, scope: Scope, code: _Code, wanted: str) -> PropertyRef:
    if not isinstance(part, PropertyRef):
        raise _operand(node, 0, code, "looks at a property, not at any other value", wanted)
    if part.var in scope.edges:
        raise type_fault(
            "T23",
            f"`${part.var}` is an edge, and `{node.name}` looks at nodes only",
            node.arguments[0].span,
            expression=expression_text(node),
            expected=wanted,
        )
    return part


def _words(node: Call, part: Expr, code: _Code) -> Constant | Param:
    if isinstance(part, Constant | Param) and _is_string(part.type):
        return part
    message = f"takes its words from a String, not from `{spelled(part)}`"
    if _is_string(value_type(part)):
        message = "takes its words from a literal or parameter"
    raise _operand(node, 1, code, message, "a String literal or parameter")


def _edits(node: Call, part: Expr) -> Constant | Param:
    wanted = f"an integer from 0 to {SEARCH_EDITS_MAX}, or an integer parameter"
    if isinstance(part, Param) and is_integer(part):
        return part
    if isinstance(part, Constant) and isinstance(part.value, int) and is_integer(part):
        if 0 <= part.value <= SEARCH_EDITS_MAX:
            return part
        raise _operand(node, 2, "T19", f"allows 0 to {SEARCH_EDITS_MAX} edits, not {part.value}", wanted)
    raise _operand(node, 2, "T19", f"counts edits, and this is `{spelled(part)}`", wanted)


def _target(node: Call, part: Expr, dimension: int) -> Constant | Param:
    """What `nearest` measures from: a vector of the property's dimension, or a String to embed."""
    wanted = f"a list of {dimension} numbers, a `Vector({dimension})` parameter, or a String literal or parameter"
    if not isinstance(part, Constant | Param):
        raise _operand(node, 1, "T15", "measures from a literal or parameter", wanted)
    of = part.type
    if _is_string(of):
        return part
    if isinstance(part, Param) and of.kind == "vector":
        if of.dimension == dimension:
            return part
        raise _operand(node, 1, "T15", f"compares vectors of {dimension} elements, not of {of.dimension}", wanted)
    if isinstance(part, Constant) and isinstance(part.value, tuple):
        if len(part.value) != dimension:
            message = f"compares vectors of {dimension} elements, not of {len(part.value)}"
            raise _operand(node, 1, "T15", message, wanted)
        if of.scalar in NUMBERS:
            if all(rounded_to_f32(float(cast("int | float", value))) is not None for value in part.value):
                return part
            raise _operand(node, 1, "T15", "computes in 32 bits, which do not hold all of these numbers", wanted)
    raise _operand(node, 1, "T15", f"does not measure from `{spelled(part)}`", wanted)


def _is_string(of: ValueType | None) -> bool:
    return of is not None and of.kind == "scalar" and of.scalar is Scalar.STRING


def _require_index(node: Call, text: PropertyRef, scope: Scope) -> None:
    """Raises `Fault` (`T27`) unless the schema declares a full-text index: a one-property `@index` or `@key`."""
    of = scope.nodes[text.var]
    found = of.property(text.name)
    assert found is not None
    if not found.indexed:
        raise type_fault(
            "T27",
            f"`{node.name}` needs an index of `{of.name}.{text.name}`, which the schema does not declare",
            node.arguments[0].span,
            expression=expression_text(node),
            expected=f"`{text.name}: {text.type.spelling()} @index` in the schema",
            type_name=of.name,
            property_name=text.name,
        )


def _operand(node: Call, position: int, code: _Code, message: str, wanted: str) -> Fault:
    return type_fault(
        code,
        f"`{node.name}` {message}",
        node.arguments[position].span,
        expression=expression_text(node),
        expected=wanted,
    )
