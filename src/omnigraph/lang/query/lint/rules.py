"""The rules of lint, and what they find in a file and in a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from omnigraph.lang.diagnostics import SourceText
from omnigraph.lang.query.lint.comparisons import decimals_that_no_f32_equals, infix_tests, variants_that_are_none
from omnigraph.lang.query.lint.findings import Finding, Found, placed
from omnigraph.lang.query.lint.looks import QueryLooks, looked_at
from omnigraph.lang.query.lint.queries import fixed_values, limit_without_order, never_updated, unused_parameters
from omnigraph.lang.query.lint.schemas import bare_ends, reserved_names, shared_names
from omnigraph.lang.query.syntax import QuerySyntax
from omnigraph.lang.query.typed import TypedQuery
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.syntax import SchemaSyntax

_OF_A_QUERY: tuple[Callable[[QueryLooks], Iterator[Found]], ...] = (
    infix_tests,
    fixed_values,
    variants_that_are_none,
    unused_parameters,
    limit_without_order,
    decimals_that_no_f32_equals,
)


def query_findings(syntax: QuerySyntax, typed: TypedQuery, catalog: Catalog, source: SourceText) -> list[Finding]:
    """What is to be said of one query that checks against the catalog."""
    query = looked_at(syntax, typed, catalog)
    return placed((found for rule in _OF_A_QUERY for found in rule(query)), source)


def file_findings(queries: Sequence[QuerySyntax], catalog: Catalog, source: SourceText) -> list[Finding]:
    """What is to be said of all queries of a file together, whether each of them checks or not."""
    return placed(never_updated(queries, catalog), source)


def schema_findings(schema: SchemaSyntax, catalog: Catalog) -> list[Finding]:
    """What is to be said of a schema; `catalog` is what the text means."""
    found = [*bare_ends(schema), *reserved_names(catalog), *shared_names(catalog)]
    return placed(found, SourceText(schema.text), in_schema=True)
