"""A migration plan as a value: what changes between two schemas, and what may not (languages.md 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from omnigraph.lang.schema.catalog import Catalog

StepKind = Literal[
    "add_interface",
    "add_node",
    "add_edge",
    "add_property",
    "rename_node",
    "rename_edge",
    "rename_property",
    "change_type",
    "widen_enum",
    "change_origin",
    "change_implements",
    "change_endpoints",
    "add_constraint",
    "remove_constraint",
    "add_index",
    "change_cardinality",
    "change_embed",
    "describe",
    "change_annotation",
    "drop_interface",
    "drop_node",
    "drop_edge",
    "drop_property",
    "warning",
    "unclassified",
]
Severity = Literal["info", "warning", "refused"]


@dataclass(frozen=True, slots=True)
class Drop:
    """What a step takes away: a type with its rows, or one property of a type. Ids and column of the accepted schema."""

    kind: Literal["node", "edge"]
    type_id: str
    property_id: str | None = None
    column: str | None = None
    vector: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One difference. `entity` names it as `node:Vessel.tonnage`, by its present name unless it is dropped."""

    entity: str
    kind: StepKind
    reason: str
    code: str | None = None
    severity: Severity = "info"
    renamed_from: str | None = None
    drop: Drop | None = None

    @property
    def supported(self) -> bool:
        return self.severity != "refused"

    def to_dict(self) -> dict[str, Any]:
        """The step on the wire; `code` and `renamed_from` only where there is one."""
        fields: dict[str, Any] = {"entity": self.entity, "kind": self.kind, "reason": self.reason}
        if self.code is not None:
            fields["code"] = self.code
        if self.renamed_from is not None:
            fields["renamed_from"] = self.renamed_from
        return {**fields, "severity": self.severity, "supported": self.supported}


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """All steps from an accepted schema to a desired text, refused ones included.

    `catalog` is what the text means with the accepted identities; None if a step is refused, so that nothing can be
    applied. `text_changed` tells a plan without steps that has a new text to record from one that has nothing to do.
    """

    steps: tuple[Step, ...]
    source: str
    catalog: Catalog | None
    text_changed: bool

    @property
    def supported(self) -> bool:
        return all(step.supported for step in self.steps)

    @property
    def loses_data(self) -> bool:
        """A step drops rows or values that exist: the request must allow it. Known after `with_row_warnings`."""
        return any(step.severity == "warning" for step in self.steps)

    @property
    def drops(self) -> tuple[Drop, ...]:
        """What steps take away: what to look up for `with_row_warnings`."""
        return tuple(step.drop for step in self.steps if step.drop is not None)

    def to_list(self) -> list[dict[str, Any]]:
        return [step.to_dict() for step in self.steps]


def with_row_warnings(
    plan: MigrationPlan, rows_of_type: Callable[[str], int], has_values: Callable[[str, str], bool]
) -> MigrationPlan:
    """The plan with `OG-DS-102` to `105` on the steps that drop something which exists.

    `rows_of_type(type id)` counts rows on the branch; `has_values(type id, column)` says whether some row holds a
    value. Each is asked only about `plan.drops`. `OG-DS-105` follows its `OG-DS-104` as a step of kind `warning`.
    """
    return replace(plan, steps=tuple(_warned(plan.steps, rows_of_type, has_values)))


def _warned(
    steps: tuple[Step, ...], rows_of_type: Callable[[str], int], has_values: Callable[[str, str], bool]
) -> Iterator[Step]:
    for step in steps:
        if step.drop is None:
            yield step
        elif step.drop.column is None:
            rows = rows_of_type(step.drop.type_id)
            code = "OG-DS-102" if step.drop.kind == "node" else "OG-DS-103"
            reason = f"{step.reason}; it holds {rows} row{'s' if rows != 1 else ''}"
            yield replace(step, reason=reason, code=code, severity="warning") if rows else step
        elif has_values(step.drop.type_id, step.drop.column):
            yield replace(step, reason=f"{step.reason}; it holds values", code="OG-DS-104", severity="warning")
            if step.drop.vector:
                reason = "vectors are lost, and making them again may cost calls to a provider"
                yield Step(step.entity, "warning", reason, code="OG-DS-105", severity="warning")
        else:
            yield step
