"""`cluster.yaml`: read, checked whole, every finding at once (cluster.md 12).

Of its keys this version knows `version`, `metadata`, `state`, `storage` and, of a graph, `schema`; keys that the design
has beside them are refused as not available, anything else as unknown. Needs no storage and no secrets.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from omnigraph.cluster.folder import ConfigFolder, Unreadable
from omnigraph.cluster.layout import graph_root, is_graph_id
from omnigraph.cluster.strict_yaml import NotPlainYaml, plain_yaml
from omnigraph.errors import InvalidRequest, InvalidSchema, OmnigraphError
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.store.uri import parse_root

CONFIG_NAME = "cluster.yaml"

_CONFIG_BYTES_MAX = 1 << 20
_KNOWN = {"version", "metadata", "state", "storage", "graphs"}
_LATER = {"providers", "policies", "apply", "env_file", "pipelines", "embeddings", "ui", "aliases", "bindings"}
_GRAPH_LATER = {"queries", "embedding_provider", "external_blobs", "protect"}
_NAME_LENGTH_MAX = 128
_SHOWN_MAX = 80


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong with a configuration folder. `address` says where, in the words of the file."""

    code: str
    address: str
    message: str
    severity: str = "error"

    def to_dict(self) -> dict[str, str]:
        return {"code": self.code, "address": self.address, "severity": self.severity, "message": self.message}


@dataclass(frozen=True, slots=True)
class GraphConfig:
    id: str
    schema_path: str
    schema: str


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """A folder that passed every check. `storage` is the root, a path or `s3://…`."""

    folder: Path
    name: str | None
    storage: str
    graphs: tuple[GraphConfig, ...]


class InvalidConfig(InvalidRequest):
    """The folder has findings; `findings` lists them all."""

    default_code = "invalid_configuration"

    def __init__(self, findings: list[Finding]) -> None:
        first = findings[0]
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        super().__init__(
            f"{first.address}: {first.message}{more}",
            effects="none",
            detail_key="findings",
            details=[finding.to_dict() for finding in findings],
        )
        self.findings = findings


@dataclass(frozen=True, slots=True)
class ClusterRoot:
    """Where a cluster's storage is. `declared`: the graphs of the folder that said so; None for a bare address."""

    storage: str
    declared: tuple[str, ...] | None


def read_config(folder: str | os.PathLike[str]) -> ClusterConfig:
    """Raises InvalidConfig with every finding. Each file is read once."""
    reading = _Reading(Path(folder))
    top = reading.top()
    graphs = () if top is None else reading.graphs(top.graphs)
    if top is None or top.storage is None or reading.findings:
        raise InvalidConfig(reading.findings)
    return ClusterConfig(Path(folder), top.name, top.storage, graphs)


def resolve_root(text: str) -> ClusterRoot:
    """What a server boots from: a configuration folder's storage, or the storage root itself.

    Of a folder only `cluster.yaml` is read: what is served comes from storage. Raises InvalidConfig, InvalidRequest
    (`cluster_root_unresolved` if there is no such folder, `invalid_storage_root`).
    """
    if "://" in text:
        parse_root(text)
        return ClusterRoot(text, None)
    folder = Path(text)
    if not folder.is_dir():
        raise InvalidRequest("there is no such folder", code="cluster_root_unresolved")
    if not os.path.lexists(folder / CONFIG_NAME):
        return ClusterRoot(text, None)
    reading = _Reading(folder)
    top = reading.top()
    if top is None or top.storage is None or reading.findings:
        raise InvalidConfig(reading.findings)
    return ClusterRoot(top.storage, tuple(sorted(top.graphs)))


def storage_root(text: str) -> str:
    """The storage root of a configuration folder, or the address itself if it is one. Raises as `resolve_root`, but takes
    a folder that does not exist yet.
    """
    return text if "://" not in text and not Path(text).is_dir() else resolve_root(text).storage


@dataclass(frozen=True, slots=True)
class _Top:
    name: str | None
    storage: str | None
    graphs: Mapping[str, Any]


class _Reading:
    def __init__(self, folder: Path) -> None:
        self._folder = ConfigFolder(folder)
        self.findings: list[Finding] = []

    def top(self) -> _Top | None:
        """`cluster.yaml` without the files that it names."""
        text = self._folder.text(CONFIG_NAME, bytes_max=_CONFIG_BYTES_MAX)
        if isinstance(text, Unreadable):
            self._found(text.code, CONFIG_NAME, text.message)
            return None
        try:
            loaded = plain_yaml(text)
        except NotPlainYaml as error:
            self._found("invalid_yaml", CONFIG_NAME, str(error))
            return None
        top = self._mapping(loaded, CONFIG_NAME, _KNOWN, _LATER)
        if top is None:
            return None
        if type(top.get("version")) is not int or top["version"] != 1:
            self._found("unsupported_cluster_config_version", "version", "must be exactly 1")
        self._state(top.get("state"))
        return _Top(self._name(top.get("metadata")), self._storage(top), self._ids(top.get("graphs")))

    def _found(self, code: str, address: str, message: str) -> None:
        self.findings.append(Finding(code, _shown(address), _shown(message, 10 * _SHOWN_MAX)))

    def _mapping(self, value: Any, address: str, known: set[str], later: set[str]) -> Mapping[str, Any] | None:
        if not isinstance(value, dict):
            self._found("invalid_type", address, "must be a mapping")
            return None
        fields = cast("dict[Any, Any]", value)
        for key in fields:
            if key in later:
                self._found("not_available", f"{address}: {key}", "is not part of this version")
            elif key not in known:
                names = ", ".join(sorted(known))
                self._found("unknown_key", f"{address}: {key}", f"is no key here; there are {names}")
        return cast("Mapping[str, Any]", fields)

    def _name(self, value: Any) -> str | None:
        if value is None:
            return None
        fields = self._mapping(value, "metadata", {"name"}, set())
        name = None if fields is None else fields.get("name")
        if name is not None and not (isinstance(name, str) and 1 <= len(name) <= _NAME_LENGTH_MAX):
            self._found("invalid_value", "metadata.name", f"must be text of 1 to {_NAME_LENGTH_MAX} characters")
            return None
        return name

    def _state(self, value: Any) -> None:
        if value is None:
            return
        fields = self._mapping(value, "state", {"backend", "lock"}, set())
        if fields is not None and fields.get("backend", "cluster") != "cluster":
            self._found("invalid_value", "state.backend", "must be cluster")
        if fields is not None and fields.get("lock", True) is not True:
            self._found("state_lock_required", "state.lock", "must be true: two writers need the lock")

    def _storage(self, top: Mapping[str, Any]) -> str | None:
        folder = self._folder.path
        if "storage" not in top:
            return str(folder.resolve())
        value = top["storage"]
        if not isinstance(value, str) or not value:
            self._found("invalid_type", "storage", "must be text: a path, file:// or s3://")
            return None
        text = value if "://" in value or os.path.isabs(value) else str(folder.resolve() / value)
        try:
            parse_root(text)
        except OmnigraphError as error:
            self._found(error.code, "storage", error.message)
            return None
        return text

    def _ids(self, value: Any) -> Mapping[str, Any]:
        """What is declared under each id that may be one."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._found("invalid_type", "graphs", "must be a mapping of graph ids")
            return {}
        found: dict[str, Any] = {}
        taken: dict[str, str] = {}
        for key, declared in cast("dict[Any, Any]", value).items():
            address = f"graphs.{key}"
            if not isinstance(key, str) or not is_graph_id(key):
                rule = "an id is a letter, then up to 63 letters, digits, '-'; some are reserved"
                self._found("invalid_graph_id", address, rule)
            elif key.lower() in taken:
                self._found("duplicate_graph_id", address, f"differs from {taken[key.lower()]} by case only")
            else:
                taken[key.lower()] = key
                found[key] = declared
        return found

    def graphs(self, declared: Mapping[str, Any]) -> tuple[GraphConfig, ...]:
        """The graphs with their schemas, by id."""
        found = [self._graph(graph_id, declared[graph_id], f"graphs.{graph_id}") for graph_id in sorted(declared)]
        return tuple(graph for graph in found if graph is not None)

    def _graph(self, graph_id: str, value: Any, address: str) -> GraphConfig | None:
        fields = self._mapping(value, address, {"schema"}, _GRAPH_LATER)
        if fields is None:
            return None
        address, path = f"{address}.schema", fields.get("schema")
        if not isinstance(path, str):
            self._found("invalid_type", address, "must be the path of one schema file")
            return None
        text = self._folder.text(path)
        if isinstance(text, Unreadable):
            self._found(text.code, address, text.message)
            return None
        try:
            compile_schema(text, mint=lambda: "0" * 16)
        except InvalidSchema as error:
            self._found(error.diagnostic.code, address, f"{path}: {error.message}")
            return None
        return GraphConfig(graph_id, path, text)


def _shown(text: str, length_max: int = _SHOWN_MAX) -> str:
    """Text of the folder as it may stand in a message: no control characters, of bounded length."""
    shown = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text[:length_max])
    return shown if len(text) <= length_max else f"{shown}…"


__all__ = [
    "CONFIG_NAME",
    "ClusterConfig",
    "ClusterRoot",
    "Finding",
    "GraphConfig",
    "InvalidConfig",
    "graph_root",
    "read_config",
    "resolve_root",
    "storage_root",
]
