"""`cluster.yaml`: read, checked whole, every finding at once (cluster.md 12).

Of its keys this version knows `version`, `metadata`, `state`, `storage` and, of a graph, `schema`; keys that the design
has beside them are refused as not available, anything else as unknown. Needs no storage and no secrets.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from omnigraph.errors import InvalidRequest, InvalidSchema, OmnigraphError
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.store.uri import parse_root

CONFIG_NAME = "cluster.yaml"
GRAPHS_FOLDER = "graphs"
GRAPH_SUFFIX = ".omni"

_GRAPH_ID = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_RESERVED = frozenset("policies healthz readyz openapi graphs discovery mcp cluster metrics console whoami".split())
_LATER = {"providers", "policies"}
_GRAPH_LATER = {"queries", "embedding_provider", "external_blobs", "protect"}
_NAME_LENGTH_MAX = 128
_FILE_BYTES_MAX = 16 << 20


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


def graph_root(storage: str, graph_id: str) -> str:
    """The root of one graph of a cluster."""
    return f"{storage.rstrip('/')}/{GRAPHS_FOLDER}/{graph_id}{GRAPH_SUFFIX}"


def read_config(folder: str | os.PathLike[str]) -> ClusterConfig:
    """Raises InvalidConfig with every finding. Each file is read once."""
    reading = _Reading(Path(folder))
    config = reading.config()
    if config is None:
        raise InvalidConfig(reading.findings)
    return config


def storage_root(text: str) -> str:
    """The storage root of a configuration folder, or the address itself if it is one. Raises InvalidConfig."""
    if "://" in text:
        parse_root(text)
        return text
    if (Path(text) / CONFIG_NAME).is_file():
        return read_config(text).storage
    return text


class _UniqueKeys(yaml.SafeLoader):
    """YAML without anchors, merge keys and repeated keys."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("anchors and aliases are not allowed")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen or key.value == "<<":
                raise yaml.YAMLError(f"the key {key.value!r} is repeated or a merge key")
            seen.add(key.value)
        return super().construct_mapping(node, deep)


class _Reading:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.findings: list[Finding] = []

    def config(self) -> ClusterConfig | None:
        text = self._file(CONFIG_NAME, CONFIG_NAME)
        if text is None:
            return None
        try:
            loaded: Any = yaml.load(text, _UniqueKeys)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            place = "" if mark is None else f" at line {mark.line + 1}, column {mark.column + 1}"
            self._found("invalid_yaml", CONFIG_NAME, f"this is not YAML that a configuration may use{place}")
            return None
        top = self._mapping(loaded, CONFIG_NAME, {"version", "metadata", "state", "storage", "graphs"}, _LATER)
        if top is None:
            return None
        if top.get("version") != 1 or isinstance(top.get("version"), bool):
            self._found("unsupported_cluster_config_version", "version", "must be exactly 1")
        name = self._name(top.get("metadata"))
        self._state(top.get("state"))
        storage = self._storage(top.get("storage"))
        graphs = self._graphs(top.get("graphs"))
        if any(finding.severity == "error" for finding in self.findings) or storage is None:
            return None
        return ClusterConfig(self._folder, name, storage, graphs)

    def _found(self, code: str, address: str, message: str) -> None:
        self.findings.append(Finding(code, address, message))

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

    def _storage(self, value: Any) -> str | None:
        if value is None:
            return str(self._folder.resolve())
        if not isinstance(value, str):
            self._found("invalid_type", "storage", "must be text")
            return None
        text = value if "://" in value or os.path.isabs(value) else str((self._folder / value).resolve())
        try:
            parse_root(text)
        except OmnigraphError as error:
            self._found(error.code, "storage", error.message)
            return None
        return text

    def _graphs(self, value: Any) -> tuple[GraphConfig, ...]:
        if value is None:
            return ()
        if not isinstance(value, dict):
            self._found("invalid_type", "graphs", "must be a mapping of graph ids")
            return ()
        found: list[GraphConfig] = []
        taken: dict[str, str] = {}
        for key, fields in cast("dict[Any, Any]", value).items():
            address = f"graphs.{key}"
            if not isinstance(key, str) or not _GRAPH_ID.fullmatch(key) or key in _RESERVED:
                self._found(
                    "invalid_graph_id",
                    address,
                    "an id is a letter, then up to 63 letters, digits, '-'; some are reserved",
                )
                continue
            if key.lower() in taken:
                self._found("duplicate_graph_id", address, f"differs from {taken[key.lower()]} by case only")
                continue
            taken[key.lower()] = key
            graph = self._graph(key, fields, address)
            if graph is not None:
                found.append(graph)
        return tuple(sorted(found, key=lambda graph: graph.id))

    def _graph(self, graph_id: str, value: Any, address: str) -> GraphConfig | None:
        fields = self._mapping(value, address, {"schema"}, _GRAPH_LATER)
        if fields is None:
            return None
        path = fields.get("schema")
        if not isinstance(path, str):
            self._found("invalid_type", f"{address}.schema", "must be the path of one schema file")
            return None
        text = self._file(path, f"{address}.schema")
        if text is None:
            return None
        try:
            compile_schema(text, mint=lambda: "0" * 16)
        except InvalidSchema as error:
            self._found(error.diagnostic.code, f"{address}.schema", f"{path}: {error.message}")
            return None
        return GraphConfig(graph_id, path, text)

    def _file(self, path: str, address: str) -> str | None:
        """A file inside the folder, no symbolic link on the way. None, with a finding, if it can't be had."""
        if os.path.isabs(path) or ".." in Path(path).parts:
            self._found("config_path_escape", address, "must be a path inside the configuration folder")
            return None
        place = self._folder
        for part in Path(path).parts:
            place = place / part
            try:
                kind = os.lstat(place).st_mode
            except OSError:
                self._found("config_file_missing", address, f"there is no file {path}")
                return None
            if stat.S_ISLNK(kind):
                self._found("config_path_symlink", address, f"{path} leads through a symbolic link")
                return None
        try:
            descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                data = file.read(_FILE_BYTES_MAX + 1)
            if len(data) > _FILE_BYTES_MAX:
                self._found("config_file_too_large", address, f"{path} has more than {_FILE_BYTES_MAX:,} bytes")
                return None
            return data.decode("utf-8")
        except UnicodeDecodeError:
            self._found("invalid_encoding", address, f"{path} is not UTF-8")
        except OSError as error:
            self._found("config_file_unreadable", address, f"{path} can't be read: {error.strerror}")
        return None
