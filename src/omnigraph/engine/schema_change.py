"""Schema plan and apply: a new text against the accepted one, as steps; applying them is one commit.

No step writes a table (history.md 12.2): a column that is missing reads as null, one that is dropped stays unnamed.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace

from omnigraph.ambient import random_hex
from omnigraph.engine.core import GraphCore
from omnigraph.engine.plan import Footprint, WritePlan
from omnigraph.errors import ReadSetConflict, SchemaChangeRefused
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.migration import plan_migration
from omnigraph.lang.schema.steps import MigrationPlan, with_row_warnings
from omnigraph.manifest.model import Manifest, TypeEntry
from omnigraph.query.snapshot import Snapshot

_REPEATS = 5


def mint_id() -> str:
    """A stable id for a type or property: 64 random bits as 16 hex digits."""
    return random_hex(16)


def migration(core: GraphCore, snapshot: Snapshot, desired_source: str) -> MigrationPlan:
    """The steps from a snapshot's schema to a text, with warnings where rows or values would go.

    Raises InvalidSchema if the text itself is at fault, StorageFailure.
    """
    accepted_source = core.schemas.source(snapshot.manifest.schema)
    plan = plan_migration(snapshot.catalog, accepted_source, desired_source, mint=mint_id)

    def has_values(type_id: str, column: str) -> bool:
        table = snapshot.table(type_id)
        if table is None or table.schema.get_field_index(column) < 0:
            return False
        with closing(table.scan([column])) as batches:  # to the first value; no filter of the library takes every type
            return any(batch.column(0).null_count < batch.num_rows for batch in batches)

    return with_row_warnings(plan, snapshot.row_count, has_values)


@dataclass
class SchemaOperation:
    """Apply a text to the head of a branch. `migration` is the plan that was made last."""

    core: GraphCore
    source: str
    allow_data_loss: bool = False
    migration: MigrationPlan | None = None

    @property
    def repeats(self) -> int:
        return _REPEATS

    @property
    def shares(self) -> bool:
        return False

    def plan(self, snapshot: Snapshot) -> WritePlan | None:
        """Stores the new schema objects. None if the text is the accepted one.

        Raises InvalidSchema, SchemaChangeRefused (a refused step, or loss without consent), ReadSetConflict if the plan
        on a moved head is another one.
        """
        before = self.migration
        plan = self.migration = migration(self.core, snapshot, self.source)
        if before is not None and before.to_list() != plan.to_list():
            raise ReadSetConflict("The schema change means something else on the new head.", member="schema")
        if plan.catalog is None:
            raise SchemaChangeRefused("The schema change has a step that can't be applied.", plan.to_list())
        if plan.loses_data and not self.allow_data_loss:
            raise SchemaChangeRefused(
                "The schema change drops rows or values that exist; allow it with allow_data_loss (on the command line --allow-data-loss).",
                plan.to_list(),
            )
        if not plan.text_changed:
            return None
        self.core.standing(snapshot.manifest.branch)  # nothing is stored beside a graph that took this one's place
        digest = self.core.schemas.put(plan.source, plan.catalog)
        types = _types_under(plan.catalog, snapshot.manifest)
        dropped = [t for t in snapshot.manifest.types if t not in types]
        return WritePlan(
            kind="schema",
            footprint=Footprint(whole=True),
            schema=digest,
            types=types,
            touched=dict.fromkeys(dropped, "drop"),
            names={t: f"{(e := snapshot.manifest.types[t]).kind}:{e.name}" for t in dropped},
        )


def _types_under(catalog: Catalog, manifest: Manifest) -> dict[str, TypeEntry]:
    """The types that the catalog still has, by their present names."""
    types: dict[str, TypeEntry] = {}
    for type_id, entry in manifest.types.items():
        entity = catalog.by_id(type_id)
        if entity is not None:
            types[type_id] = replace(entry, name=entity.name)
    return types
