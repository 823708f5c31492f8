"""The rules of a type (languages.md 4.4): which properties a rule may name, and the rule in its checked form.

Refuses with `S007` (`@key`), `S008` (`@unique`, `@index`), `S009` (`@range`, `@check`), `S010` (`@card`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, Literal, cast

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.schema.catalog import CheckRule, RangeRule
from omnigraph.lang.schema.faults import Faults, closest, one_of
from omnigraph.lang.schema.syntax import CardDecl, CheckDecl, GroupDecl, RangeDecl, Value, Word
from omnigraph.lang.types import FLOATS, INTEGER_RANGE, Scalar, ValueType
from omnigraph.lang.values import number_text, rounded_to_f32

GroupKind = Literal["key", "unique", "index"]
Types = Mapping[str, ValueType]  # property name -> type, injected ones included

SRC, DST = "@src", "@dst"
_CODES: dict[GroupKind, str] = {"key": "S007", "unique": "S008", "index": "S008"}
_BARE_ENDS = {"src": SRC, "dst": DST}


@dataclass(frozen=True, slots=True)
class Group:
    """A checked group: `members` as written, without repetition."""

    kind: GroupKind
    members: tuple[str, ...]
    span: Span


# --- @key, @unique, @index


def note_group(kind: GroupKind, name: str, of_type: ValueType, span: Span, faults: Faults) -> Group:
    """The group that a note on a property makes."""
    _refuse_unfit(kind, name, of_type, span, faults)
    return Group(kind, (name,), span)


def body_group(rule: GroupDecl, types: Types, faults: Faults, *, on_edge: bool) -> Group:
    """The group of a body rule; `src` and `dst` are the ends of an edge that declares no such property."""
    code = _CODES[rule.kind]
    members: list[str] = []
    for word in rule.members:
        member = _member(word, types, code, faults, on_edge=on_edge)
        if member in members:
            raise faults.refusal(
                code, word.span, f"`{member}` twice in one `@{rule.kind}`", expected="every member once"
            )
        if member in types:
            _refuse_unfit(rule.kind, member, types[member], word.span, faults)
        members.append(member)
    if rule.kind == "key" and on_edge and not {SRC, DST} <= set(members):
        message = "the key of an edge contains both ends"
        raise faults.refusal(code, rule.span, message, expected="`@key(@src, @dst)`, maybe with properties")
    return Group(rule.kind, tuple(members), rule.span)


def key_members(groups: Iterable[Group], faults: Faults) -> tuple[str, ...]:
    """The members of the one key, in the order of the id's components (4.6); empty without a key.

    That order holds for a type that is created now: the ends first, then properties by name in byte order.
    """
    keys = sorted((group for group in groups if group.kind == "key"), key=lambda group: group.span.start)
    if len(keys) > 1:
        raise faults.refusal("S007", keys[1].span, "a second key", expected="one `@key` per type")
    return tuple(sorted(keys[0].members, key=lambda name: (name != SRC, name != DST, name))) if keys else ()


def groups_of(kind: GroupKind, groups: Iterable[Group]) -> tuple[tuple[str, ...], ...]:
    """The groups of a kind, sorted, the first of those with the same members. Layout leaves no trace in them."""
    by_members: dict[frozenset[str], tuple[str, ...]] = {}
    for group in groups:
        if group.kind == kind:
            by_members.setdefault(frozenset(group.members), group.members)
    return tuple(sorted(by_members.values()))


def _member(word: Word, types: Types, code: str, faults: Faults, *, on_edge: bool) -> str:
    if on_edge and word.text in _BARE_ENDS and word.text not in types:
        return _BARE_ENDS[word.text]
    if word.text in (SRC, DST):
        if on_edge:
            return word.text
        raise faults.refusal(code, word.span, f"a node has no `{word.text}`", expected=one_of(types))
    _refuse_unknown(word, types, code, faults)
    return word.text


def _refuse_unknown(word: Word, types: Types, code: str, faults: Faults) -> None:
    if word.text not in types:
        fix = closest(word.text, types)
        raise faults.refusal(code, word.span, f"no property `{word.text}` here", expected=one_of(types), fix=fix)


def _refuse_unfit(kind: GroupKind, name: str, of_type: ValueType, span: Span, faults: Faults) -> None:
    blob = of_type.scalar is Scalar.BLOB
    unfit = blob if kind == "index" else blob or of_type.kind in ("list", "vector")
    if unfit:
        expected = {"index": "a property that is no Blob"}.get(kind, "a scalar or enum property that is no Blob")
        message = f"`{name}` is {of_type.spelling()} and can't be in `@{kind}`"
        raise faults.refusal(_CODES[kind], span, message, expected=expected, property_name=name)
    if kind == "key" and of_type.nullable:
        message = f"`{name}` may be null and can't be in a key"
        raise faults.refusal("S007", span, message, expected="a property without `?`", property_name=name)


# --- @range, @check, @card


def range_rule(rule: RangeDecl, types: Types, faults: Faults) -> RangeRule:
    """The range with its bounds converted to the property's type."""
    _refuse_unknown(rule.property, types, "S009", faults)
    name, of_type = rule.property.text, types[rule.property.text]
    if not of_type.is_number:
        message = f"`{name}` is {of_type.spelling()} and has no range"
        raise faults.refusal("S009", rule.property.span, message, expected="a numeric property", property_name=name)
    low = None if rule.low is None else _bound(rule.low, of_type.scalar, faults)
    high = None if rule.high is None else _bound(rule.high, of_type.scalar, faults)
    if low is not None and high is not None and low > high:
        bounds = f"{number_text(low, of_type.scalar)}..{number_text(high, of_type.scalar)}"
        raise faults.refusal("S009", rule.span, f"nothing lies in {bounds}", expected="low ≤ high")
    return RangeRule(name, low, high)


def _bound(written: Value, to: Scalar, faults: Faults) -> int | float:
    value = cast("int | float", written.value)
    if to in FLOATS:
        nearest = _nearest(value, to)
        if nearest is None:
            raise faults.refusal("S009", written.span, f"a bound beyond {to}", expected=f"a finite {to}")
        return nearest
    low, high = INTEGER_RANGE[to]
    if isinstance(value, float):
        raise faults.refusal("S009", written.span, f"a decimal bound on {to}", expected="an integer")
    if not low <= value <= high:
        raise faults.refusal("S009", written.span, f"a bound beyond {to}", expected=f"{low} to {high}")
    return value


def _nearest(value: int | float, to: Scalar) -> float | None:
    """The nearest F64, and of that the nearest F32: as loads and parameters read numbers. None beyond the type."""
    try:
        nearest = float(value)
    except OverflowError:
        return None
    return rounded_to_f32(nearest) if to is Scalar.F32 else nearest


def check_rule(rule: CheckDecl, types: Types, faults: Faults) -> CheckRule:
    """The check, its pattern compiled once to see that it is one."""
    _refuse_unknown(rule.property, types, "S009", faults)
    name, of_type = rule.property.text, types[rule.property.text]
    if not of_type.is_text:
        message = f"`{name}` is {of_type.spelling()} and can't be checked by a pattern"
        raise faults.refusal("S009", rule.property.span, message, expected="a String or enum property")
    pattern = cast("str", rule.pattern.value)
    if not is_re2(pattern):
        expected = "a regular expression in RE2 syntax: no look-around, no back-references"
        raise faults.refusal("S009", rule.pattern.span, "not a regular expression", expected=expected)
    return CheckRule(name, pattern)


def is_re2(pattern: str) -> bool:
    """Whether RE2 compiles the pattern."""
    re2 = _re2()
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error:
        return False
    return True


@cache
def _re2() -> Any:
    """Loaded when the first pattern is read: most schemas have none."""
    import re2  # pyright: ignore[reportMissingTypeStubs]

    module: ModuleType = re2
    return cast("Any", module)


def cardinality(rules: tuple[CardDecl, ...], faults: Faults) -> tuple[int, int | None]:
    """The bounds of an edge's `@card`, `0..` without one. Edges are counted in 64 bits, so are the bounds."""
    if not rules:
        return (0, None)
    first, *others = rules
    if others:
        raise faults.refusal("S010", others[0].span, "a second `@card`", expected="one `@card` per edge")
    most = INTEGER_RANGE[Scalar.I64][1]
    if max(first.low, first.high or 0) > most:
        raise faults.refusal("S010", first.span, "a bound beyond what can be counted", expected=f"at most {most}")
    if first.high is not None and first.low > first.high:
        message = f"no number lies in {first.low}..{first.high}"
        raise faults.refusal("S010", first.span, message, expected="low ≤ high")
    return first.low, first.high
