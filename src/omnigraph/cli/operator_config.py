"""`~/.omnigraph/config.yaml`: who the operator is and where graphs are (interfaces.md 12.7). Never holds a secret.

`OMNIGRAPH_HOME` moves the folder. A missing file is an empty configuration; unknown keys are warnings; a key that is
named like a secret refuses the whole file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from omnigraph.cli.errors import UsageRefused

FILE_NAME = "config.yaml"

CellLayout = Literal["truncate", "wrap"]
Output = Literal["table", "json", "jsonl", "csv", "kv", "arrow"]
OUTPUTS: tuple[Output, ...] = ("table", "json", "jsonl", "csv", "kv", "arrow")

_SECRET = re.compile(r"token|secret|password|passwd|credential|api_?key|access_?key|private_?key", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """What a profile or the defaults name: at most one of server, cluster and store."""

    server: str | None = None
    cluster: str | None = None
    store: str | None = None
    default_graph: str | None = None
    branch: str | None = None
    output: Output | None = None

    def to_dict(self) -> dict[str, str]:
        names = ("server", "cluster", "store", "default_graph", "branch", "output")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True)
class TableSettings:
    """How tables look on a terminal. `max_rows` 0 shows all."""

    max_column_width: int = 80
    cell_layout: CellLayout = "truncate"
    max_rows: int = 1_000


@dataclass(frozen=True, slots=True)
class OperatorConfig:
    """The file, checked. `warnings` are for stderr."""

    path: Path
    actor: str | None = None
    defaults: Place = Place()
    profiles: Mapping[str, Place] = field(default_factory=dict[str, Place])
    clusters: Mapping[str, str] = field(default_factory=dict[str, str])
    servers: Mapping[str, str] = field(default_factory=dict[str, str])
    table: TableSettings = TableSettings()
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "path": str(self.path),
            "operator": {} if self.actor is None else {"actor": self.actor},
            "defaults": self.defaults.to_dict(),
            "profiles": {name: place.to_dict() for name, place in sorted(self.profiles.items())},
            "clusters": {name: {"root": root} for name, root in sorted(self.clusters.items())},
            "servers": {name: {"url": url} for name, url in sorted(self.servers.items())},
            "table": {
                "max_column_width": self.table.max_column_width,
                "cell_layout": self.table.cell_layout,
                "max_rows": self.table.max_rows,
            },
        }


def config_path(environ: Mapping[str, str]) -> Path:
    """Where the file is looked for."""
    home = environ.get("OMNIGRAPH_HOME")
    return (Path(home) if home else Path.home() / ".omnigraph") / FILE_NAME


def read_operator_config(environ: Mapping[str, str]) -> OperatorConfig:
    """Raises UsageRefused (`invalid_configuration`) for a file that can't be read or whose values don't fit."""
    path = config_path(environ)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return OperatorConfig(path)
    except (OSError, UnicodeDecodeError):
        raise _refused("the file can't be read as UTF-8 text") from None
    import yaml  # only when there is a file: the command must start fast

    try:
        loaded: Any = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" at line {mark.line + 1}, column {mark.column + 1}"
        raise _refused(f"the file is not YAML{where}") from None
    return _Reading(path).config({} if loaded is None else loaded)


class _Reading:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._warnings: list[str] = []

    def config(self, loaded: Any) -> OperatorConfig:
        known = {"operator", "servers", "clusters", "defaults", "profiles", "aliases", "table"}
        top = self._mapping(loaded, "the file", known)
        operator = self._mapping(top.get("operator"), "operator", {"actor"})
        defaults = self._place(top.get("defaults"), "defaults", {"server", "store"})
        profiles = {
            name: self._profile(value, f"profiles.{name}")
            for name, value in self._mapping(top.get("profiles"), "profiles", None).items()
        }
        clusters = {
            name: self._required(self._mapping(value, f"clusters.{name}", {"root"}), "root", f"clusters.{name}")
            for name, value in self._mapping(top.get("clusters"), "clusters", None).items()
        }
        keys = {"url", "ca_file", "timeout_seconds"}
        servers = {
            name: self._required(self._mapping(value, f"servers.{name}", keys), "url", f"servers.{name}")
            for name, value in self._mapping(top.get("servers"), "servers", None).items()
        }
        if top.get("aliases"):
            self._warnings.append("aliases: served queries are not part of this version")
        return OperatorConfig(
            path=self._path,
            actor=self._text(operator, "actor", "operator"),
            defaults=defaults,
            profiles=profiles,
            clusters=clusters,
            servers=servers,
            table=self._table(top.get("table")),
            warnings=tuple(self._warnings),
        )

    def _mapping(self, value: Any, where: str, known: set[str] | None) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise _refused(f"{where} must be a mapping")
        fields = cast("dict[Any, Any]", value)
        for key in fields:
            if not isinstance(key, str):
                raise _refused(f"a key of {where} is not text")
            if known is not None and key not in known:
                if _SECRET.search(key):
                    raise _refused(f"{where} has a key named like a secret; secrets do not belong in this file")
                self._warnings.append(f"{where} has an unknown key '{key}'; it knows {', '.join(sorted(known))}")
        return cast("dict[str, Any]", fields)

    def _place(self, value: Any, where: str, kinds: set[str]) -> Place:
        fields = self._mapping(value, where, {*kinds, "default_graph", "output", "branch"})
        output = self._text(fields, "output", where)
        if output is not None and output not in OUTPUTS:
            raise _refused(f"{where}.output is one of {', '.join(OUTPUTS)}")
        return Place(
            server=self._text(fields, "server", where),
            cluster=self._text(fields, "cluster", where) if "cluster" in kinds else None,
            store=self._text(fields, "store", where),
            default_graph=self._text(fields, "default_graph", where),
            branch=self._text(fields, "branch", where),
            output=output,
        )

    def _profile(self, value: Any, where: str) -> Place:
        place = self._place(value, where, {"server", "cluster", "store"})
        if sum(each is not None for each in (place.server, place.cluster, place.store)) != 1:
            raise _refused(f"{where} names exactly one of server, cluster and store")
        return place

    def _table(self, value: Any) -> TableSettings:
        fields = self._mapping(value, "table", {"max_column_width", "cell_layout", "max_rows"})
        layout = fields.get("cell_layout", "truncate")
        if layout not in ("truncate", "wrap"):
            raise _refused("table.cell_layout is truncate or wrap")
        standard = TableSettings()
        return TableSettings(
            max_column_width=self._count(
                fields.get("max_column_width", standard.max_column_width), 4, "max_column_width"
            ),
            cell_layout=layout,
            max_rows=self._count(fields.get("max_rows", standard.max_rows), 0, "max_rows"),
        )

    def _count(self, value: Any, low: int, name: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < low:
            raise _refused(f"table.{name} is an integer of at least {low}")
        return value

    def _text(self, fields: Mapping[str, Any], key: str, where: str) -> str | None:
        value = fields.get(key)
        if value is not None and not (isinstance(value, str) and value):
            raise _refused(f"{where}.{key} must be text")
        return value

    def _required(self, fields: Mapping[str, Any], key: str, where: str) -> str:
        value = self._text(fields, key, where)
        if value is None:
            raise _refused(f"{where} lacks {key}")
        return value


def _refused(reason: str) -> UsageRefused:
    return UsageRefused(f"The operator configuration {FILE_NAME}: {reason}.", code="invalid_configuration")
