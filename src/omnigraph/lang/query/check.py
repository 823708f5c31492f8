"""`.gq` text -> typed queries: parse, then one pass per query that stops at the first fault (languages.md 16.1).

>>> from omnigraph.lang.schema.catalog import Catalog, NodeType
>>> catalog = Catalog(nodes={"Port": NodeType("0", "Port", ())}, edges={}, interfaces={})
>>> check("query all() { match { $p: Port } return { $p } }", catalog)[0].items[0].name
'p'
"""

from __future__ import annotations

from omnigraph.lang.diagnostics import SourceText
from omnigraph.lang.query.availability import file_refusal
from omnigraph.lang.query.faults import Fault, invalid_query, type_fault
from omnigraph.lang.query.mutations import check_statements
from omnigraph.lang.query.parse import parse_file
from omnigraph.lang.query.patterns import check_names, check_pattern
from omnigraph.lang.query.results import check_result
from omnigraph.lang.query.scope import Fresh, Scope
from omnigraph.lang.query.settings import settings_fault
from omnigraph.lang.query.syntax import ParamSyntax, QueryFile, QuerySyntax, ReadBody
from omnigraph.lang.query.typed import MutationQuery, Param, ParamDecl, ReadQuery, Signature, TypedQuery
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.types import Scalar, ValueType

_DIMENSION_MAX = 2**31 - 1


def check(source: str | bytes, catalog: Catalog) -> list[TypedQuery]:
    """The typed queries of a source text, in written order; none for a text of settings lines or a branch statement.

    Raises `InvalidQuery` with the diagnostic of the first fault.
    """
    return check_file(parse_file(source), catalog)


def check_file(file: QueryFile, catalog: Catalog) -> list[TypedQuery]:
    """As `check`, of a text that is parsed already."""
    source = SourceText(file.text)
    fault = settings_fault(file) or _repeated_name(file)
    if fault is not None:
        raise invalid_query(fault, source, None)
    typed = [check_query(query, catalog, source) for query in file.declared]
    refusal = file_refusal(file)
    if refusal is not None:
        raise invalid_query(refusal, source, None)
    return typed


def check_query(query: QuerySyntax, catalog: Catalog, source: SourceText) -> TypedQuery:
    """The typed form of one query of a source. Raises `InvalidQuery`."""
    try:
        return _typed_query(query, catalog, source.text[query.span.start : query.span.end])
    except Fault as fault:
        raise invalid_query(fault, source, query.name.text) from None


def signatures(source: str) -> tuple[Signature, ...]:
    """The signatures of the queries of a source text. Needs no schema; raises `InvalidQuery`."""
    file = parse_file(source)
    try:
        return tuple(Signature(query.name.text, tuple(map(_declared, query.params))) for query in file.declared)
    except Fault as fault:
        raise invalid_query(fault, SourceText(file.text), None) from None


def _repeated_name(file: QueryFile) -> Fault | None:
    seen: set[str] = set()
    for query in file.queries:
        if query.name.text in seen:
            return Fault("Q005", f"there are two queries `{query.name.text}`", query.name.span, "another name")
        seen.add(query.name.text)
    return None


def _typed_query(query: QuerySyntax, catalog: Catalog, text: str) -> TypedQuery:
    declarations = tuple(_declared(param) for param in query.params)
    params = {declared.name: Param(declared.name, declared.type) for declared in declarations}
    if not isinstance(query.body, ReadBody):
        return MutationQuery(
            name=query.name.text,
            params=declarations,
            statements=check_statements(query.body, params, catalog),
            description=query.description,
            instruction=query.instruction,
            text=text,
        )
    scope = Scope(params, Fresh())
    check_names(query.body.clauses, scope)
    pattern = check_pattern(query.body.clauses, scope, catalog)
    result = check_result(query.body, scope)
    return ReadQuery(
        name=query.name.text,
        params=declarations,
        pattern=pattern,
        items=result.items,
        aggregated=result.aggregated,
        order=result.order,
        limit=result.limit,
        description=query.description,
        instruction=query.instruction,
        text=text,
    )


def _declared(param: ParamSyntax) -> ParamDecl:
    name = param.name.text
    if name == "_" or name.startswith("__"):
        raise type_fault(
            "T47",
            f"`${name}` cannot be the name of a parameter",
            param.name.span,
            expression=f"${name}",
            expected="a name other than `_` that does not begin with `__`",
        )
    return ParamDecl(name, _param_type(param), param.span, param.description)


def _param_type(param: ParamSyntax) -> ValueType:
    written = param.type
    if written.form == "vector":
        if 1 <= written.dimension <= _DIMENSION_MAX:
            return ValueType("vector", Scalar.F32, written.nullable, dimension=written.dimension)
        raise _unknown_param_type(param, f"a vector has 1 to {_DIMENSION_MAX} elements")
    scalar = next((known for known in Scalar if known == written.word), None)
    if scalar is None:
        raise _unknown_param_type(param, f"`{written.word}` is no type of a parameter")
    if written.form == "list" and scalar is Scalar.BLOB:
        raise _unknown_param_type(param, "there are no lists of blobs")
    return ValueType("list" if written.form == "list" else "scalar", scalar, written.nullable)


def _unknown_param_type(param: ParamSyntax, message: str) -> Fault:
    words = ", ".join(sorted(Scalar))
    return type_fault(
        "T48",
        message,
        param.type.span,
        expression=f"${param.name.text}",
        expected=f"{words}, a list of one of them but Blob, or Vector(N)",
    )
