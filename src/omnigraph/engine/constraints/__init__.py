"""The constraints of languages.md 4.4, judged on the columns of one write's final state.

Each function takes rows in the columns of `table_schema` (and `line_number`, if they came from records) together with
what the engine has looked up, and returns the first `Violation` or None; `first` picks among several types. Order:
record line or statement, then type name, then id. Nothing here reads a table or knows a snapshot.

    W001 required      W002 enum        W003 range     W004 check       `value_violation`
    W008 key           W009 finite, in range                            `value_violation`
    W005 unique        `unique_violation`
    W006 endpoint      `endpoint_violation`
    W007 cardinality   `cardinality_violation`
    key_conflict       `repeated_id`, `existing_id`; `last_of_each_id` keeps the winner of a merge
"""

from omnigraph.engine.constraints.across import cardinality_violation, endpoint_violation, unique_violation
from omnigraph.engine.constraints.ids import existing_id, last_of_each_id, repeated_id
from omnigraph.engine.constraints.values import value_violation
from omnigraph.engine.constraints.violation import Violation, first

__all__ = [
    "Violation",
    "cardinality_violation",
    "endpoint_violation",
    "existing_id",
    "first",
    "last_of_each_id",
    "repeated_id",
    "unique_violation",
    "value_violation",
]
