"""The lint report of one query file (languages.md 17): the faults of its queries, and what the rules find. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.errors import InvalidQuery
from omnigraph.lang.diagnostics import Diagnostic, SourceText
from omnigraph.lang.query.check import check_file, check_query
from omnigraph.lang.query.lint.findings import Finding, Severity, in_order
from omnigraph.lang.query.lint.rules import file_findings, query_findings
from omnigraph.lang.query.operation import describe
from omnigraph.lang.query.parse import parse_file
from omnigraph.lang.query.syntax import QuerySyntax, ReadBody
from omnigraph.lang.schema.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Linted:
    """One file. `results` are the wire's objects of its queries, `refused` those of what is wrong with the file as a whole,
    `findings` all that is right and perhaps not meant, in order.
    """

    path: str
    results: tuple[dict[str, Any], ...]
    refused: tuple[dict[str, Any], ...]
    faults: tuple[Diagnostic, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def status(self) -> Literal["ok", "error"]:
        return "error" if self.faults else "ok"

    @property
    def queries(self) -> int:
        return len(self.results)

    def count(self, severity: Severity) -> int:
        """How many findings are of a severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        return {
            "query_path": self.path,
            "queries_processed": self.queries,
            "errors": len(self.faults),
            "warnings": self.count("warning"),
            "infos": self.count("info"),
            "results": list(self.results),
            "findings": [*self.refused, *(finding.to_dict() for finding in self.findings)],
        }


def linted(source: str, path: str, catalog: Catalog, of_schema: Sequence[Finding] = ()) -> Linted:
    """Parse, then check each query for itself; the first fault of each counts, and the next query is checked all the same.
    The rules look at those that check. `of_schema` is what they find in the schema.
    """
    try:
        file = parse_file(source)
    except InvalidQuery as refused:
        fault = _diagnostic(refused)
        return Linted(path, (), (_refusal("Q000", fault),), (fault,))
    text = SourceText(file.text)
    judged = [_judged(query, catalog, text) for query in file.declared]
    findings = [
        *of_schema,
        *file_findings(file.declared, catalog, text),
        *(f for each in judged for f in each.findings),
    ]
    faults = [each.fault for each in judged if each.fault is not None]
    refusals: tuple[dict[str, Any], ...] = ()
    if not faults:
        try:
            check_file(file, catalog)
        except InvalidQuery as refused:  # of the file, not of one query: settings, repeated names, statements
            faults = [_diagnostic(refused)]
            refusals = (_refusal(faults[0].code, faults[0]),)
    return Linted(path, tuple(each.result for each in judged), refusals, tuple(faults), in_order(findings))


@dataclass(frozen=True, slots=True)
class _Judged:
    result: dict[str, Any]
    fault: Diagnostic | None = None
    findings: tuple[Finding, ...] = ()


def _judged(query: QuerySyntax, catalog: Catalog, text: SourceText) -> _Judged:
    result: dict[str, Any] = {
        "name": query.name.text,
        "kind": "read" if isinstance(query.body, ReadBody) else "mutation",
    }
    try:
        typed = check_query(query, catalog, text)
    except InvalidQuery as refused:
        fault = _diagnostic(refused)
        return _Judged({**result, "status": "error", "warnings": [], "error": fault.to_dict()}, fault)
    findings = in_order(query_findings(query, typed, catalog, text))
    codes = list(dict.fromkeys(finding.code for finding in findings))
    operation = describe(typed, catalog).to_dict()
    return _Judged({**result, "status": "ok", "warnings": codes, "operation": operation}, findings=findings)


def _refusal(code: str, fault: Diagnostic) -> dict[str, Any]:
    return {"severity": "error", "code": code, "message": fault.message, "error": fault.to_dict()}


def _diagnostic(refused: InvalidQuery) -> Diagnostic:
    diagnostic = refused.diagnostic
    assert isinstance(diagnostic, Diagnostic)
    return diagnostic
