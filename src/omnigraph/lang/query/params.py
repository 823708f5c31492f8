"""Parameters of an invocation: what a caller gives -> values in their normal form (languages.md 7, 20.4).

The normal form is what the engine computes with: int, float (of `F32` rounded to 32 bits), str, bool, date, datetime in
UTC and whole milliseconds, a tuple for a list or vector, None for null; a Blob is its text. Native Python values come
in by the door "python" only, where each becomes what JSON would have said, so that one table judges both doors.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeVar, cast

from omnigraph.errors import InvalidParams
from omnigraph.lang.diagnostics import Diagnostic, SourceText, Span
from omnigraph.lang.natives import from_python
from omnigraph.lang.query.faults import Fault, invalid_query, listing, nearest_name
from omnigraph.lang.query.search_operands import SearchOperand, search_operands
from omnigraph.lang.query.typed import Param, ParamDecl, ReadQuery, Signature, TypedQuery
from omnigraph.lang.values import Refused, Value, date_text, datetime_text, value_from_json

Door = Literal["json", "python"]
_Query = TypeVar("_Query", bound=TypedQuery | Signature)


def choose_query(queries: Sequence[_Query], name: str | None, *, source: str) -> _Query:
    """The query of a file that is to run: the one of that name, or without a name the only one. `source` is their text.

    Raises `InvalidQuery` (`Q004`) if the file holds no query at all, `InvalidParams` (`P006`) if there is none of the
    name, or several and no name.
    """
    if not queries:
        text = SourceText(source)
        end = Span(len(source), len(source))
        raise invalid_query(Fault("Q004", "the text holds no query to run", end, "`query`"), text, None)
    names = [query.name for query in queries]
    if name is None:
        if len(queries) == 1:
            return queries[0]
        message = "the text holds several queries: which one?"
        raise InvalidParams(_diagnostic("P006", message, None, expected=f"one of {listing(names)}"))
    for query in queries:
        if query.name == name:
            return query
    near = nearest_name(name, names)
    raise InvalidParams(
        _diagnostic("P006", f"there is no query `{name}`", None, expected=f"one of {listing(names)}", fix=near)
    )


def bind_params(query: TypedQuery | Signature, given: Mapping[str, object], *, door: Door) -> dict[str, Value | None]:
    """A value for every declared parameter, in order of declaration; absent nullable ones are None.

    Raises `InvalidParams`: `P004` for a name that the query does not declare, then for the first parameter at fault
    `P001` if it is missing, `P002` if it has the wrong shape, `P003` if its value does not fit. Then, by the role of a
    parameter in a read, `P003` for a limit, a number of edits or a `k` out of range and `P005` for a null rank.
    """
    declared = [param.name for param in query.params]
    for name in given:
        if name not in declared:
            near = nearest_name(name, declared)
            expected = f"a parameter of `{query.name}`: {listing(declared)}"
            message = f"`{query.name}` declares no parameter `{name}`"
            raise InvalidParams(_diagnostic("P004", message, query.name, expected=expected, fix=near))
    bound = {param.name: _bound(param, given, query, door) for param in query.params}
    limit = query.limit if isinstance(query, ReadQuery) else None
    if isinstance(limit, Param):
        count = bound[limit.name]
        if isinstance(count, int) and count < 0:
            message = f"the parameter `{limit.name}` is a limit and is negative"
            raise InvalidParams(_diagnostic("P003", message, query.name, expected="an integer of at least 0"))
    for operand in search_operands(query) if isinstance(query, ReadQuery) else ():
        if operand.param in bound:
            _judge_operand(operand, bound[operand.param], query.name)
    return bound


def bind_given(query: ReadQuery, given: Mapping[str, object], *, door: Door) -> dict[str, Value | None]:
    """As `bind_params` for the parameters that are given; the others stay away. For who does not run the query."""
    declared = tuple(param for param in query.params if param.name in given)
    limit = query.limit if not isinstance(query.limit, Param) or query.limit.name in given else None
    return bind_params(replace(query, params=declared, limit=limit), given, door=door)


def json_value(value: Value | None) -> object:
    """A value in its normal form as JSON spells it: one spelling for all that mean the same."""
    match value:
        case tuple():
            return [json_value(cast("Value | None", item)) for item in value]
        case dt.datetime():
            return datetime_text(value)
        case dt.date():
            return date_text(value)
        case _:
            return value


def _judge_operand(operand: SearchOperand, value: Value | None, query: str) -> None:
    if value is None:
        message = f"the parameter `{operand.param}` is null, which {operand.role} can't be"
        raise InvalidParams(_diagnostic("P005", message, query, expected=operand.wanted()))
    if isinstance(value, int) and not operand.admits(value):
        message = f"the parameter `{operand.param}` is {operand.role} and is {value}"
        raise InvalidParams(_diagnostic("P003", message, query, expected=operand.wanted()))


def _bound(param: ParamDecl, given: Mapping[str, object], query: TypedQuery | Signature, door: Door) -> Value | None:
    spelled = param.type.spelling()
    if param.name not in given:
        if param.type.nullable:
            return None
        message = f"the parameter `{param.name}` is missing"
        raise InvalidParams(_diagnostic("P001", message, query.name, expected=f"a value of type `{spelled}`"))
    raw = given[param.name]
    value = raw if door == "json" else from_python(param.type, raw)
    if value is None:
        if param.type.nullable:
            return None
        message = f"the parameter `{param.name}` is null"
        raise InvalidParams(_diagnostic("P003", message, query.name, expected=f"a value of type `{spelled}`"))
    accepted = value if isinstance(value, Refused) else value_from_json(param.type, value)
    if isinstance(accepted, Refused):
        code = "P002" if accepted.problem == "shape" else "P003"
        message = f"the parameter `{param.name}` is refused: {accepted.reason}"
        raise InvalidParams(_diagnostic(code, message, query.name, expected=f"a value of type `{spelled}`"))
    return accepted


def _diagnostic(
    code: str, message: str, query: str | None, *, expected: str | None = None, fix: str | None = None
) -> Diagnostic:
    text = f"parameter error: {code}: {message}"
    return Diagnostic(code, "params", text, query=query, expected=expected, fix=fix)
