"""A graph so simple that it can't be wrong, and the writes that the laboratory makes, as functions of it.

Every write of a run has a label, which travels in the message of its commit. What storage holds is then judged by
replaying the labels of the chain, in its order, on this model: a commit that nobody asked for has no label, one that was
doubled is applied twice, one that was prepared on a state it does not follow leaves other rows than the replay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]
Picture = Mapping[str, tuple[str, ...]]

SCHEMA = """
node Port { code: String @key  mark: String? }
node Note { text: String }
node Buoy { code: String @key  mark: String? }
edge Ferry: Port -> Port { mark: String? }
edge Leg: Port -> Port { mark: String? }
"""
WITHOUT_PORTS = "node Note { text: String }\nnode Buoy { code: String @key  mark: String? }\n"
WITHOUT_MARKS = SCHEMA.replace("node Port { code: String @key  mark: String? }", "node Port { code: String @key }")
WITHOUT_NOTES = SCHEMA.replace("node Note { text: String }\n", "")

_KEYED = {"Port": "code", "Buoy": "code", "Pier": "code"}


@dataclass(frozen=True)
class Model:
    """The state of one branch: the accepted text, and the rows of each type, values that are null left out."""

    schema: str = SCHEMA
    rows: Mapping[str, tuple[Row, ...]] = field(default_factory=dict[str, "tuple[Row, ...]"])

    def of(self, name: str) -> tuple[Row, ...]:
        return self.rows.get(name, ())

    def having(self, name: str, rows: tuple[Row, ...]) -> Model:
        return Model(self.schema, {**self.rows, name: rows})

    def picture(self) -> Picture:
        return picture({name: list(rows) for name, rows in self.rows.items()})

    def count(self) -> dict[str, int]:
        return {name: len(rows) for name, rows in self.rows.items() if rows}


Deed = Callable[[Model], Model]


def picture(rows: Mapping[str, list[Any]]) -> Picture:
    """Rows by type in an order of their own, so that two states can be compared."""
    return {name: tuple(sorted(map(_spelled, found))) for name, found in sorted(rows.items()) if found}


def _spelled(row: Row) -> str:
    return " ".join(f"{name}={row[name]}" for name in sorted(row) if row[name] is not None)


# --- the deeds


def also(*deeds: Deed) -> Deed:
    def done(model: Model) -> Model:
        for deed in deeds:
            model = deed(model)
        return model

    return done


def nothing(model: Model) -> Model:
    return model


def put(name: str, **row: Any) -> Deed:
    """A row comes; of a keyed type in place of the one with its key."""
    key = _KEYED.get(name)

    def done(model: Model) -> Model:
        kept = tuple(each for each in model.of(name) if key is None or each[key] != row[key])
        return model.having(name, (*kept, row))

    return done


def marked(code: str, mark: str) -> Deed:
    """An update of one port."""

    def done(model: Model) -> Model:
        rows = tuple({**row, "mark": mark} if row["code"] == code else row for row in model.of("Port"))
        return model.having("Port", rows)

    return done


def gone(code: str) -> Deed:
    """A port goes, with the edges at it."""

    def done(model: Model) -> Model:
        model = model.having("Port", tuple(row for row in model.of("Port") if row["code"] != code))
        for name in ("Ferry", "Leg"):
            model = model.having(name, tuple(row for row in model.of(name) if code not in (row["from"], row["to"])))
        return model

    return done


def only(name: str, *rows: Row) -> Deed:
    """All rows of a type go, and these come."""
    return lambda model: model.having(name, tuple(rows))


def accepted(text: str) -> Deed:
    """Another schema; the rows of types that it lacks go, and the values of properties."""

    def done(model: Model) -> Model:
        kept: dict[str, tuple[Row, ...]] = {}
        for name, rows in model.rows.items():
            declared = re.search(rf"\b(?:node|edge) {name}\b[^{{]*{{([^}}]*)}}", text)
            if declared is not None:
                names = {"from", "to", *re.findall(r"(\w+):", declared[1])}
                kept[name] = tuple({k: v for k, v in row.items() if k in names} for row in rows)
        return Model(text, kept)

    return done
