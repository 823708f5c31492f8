"""Where a command acts (interfaces.md 12.1): flags, profile, environment and defaults -> one target; a target -> a root.

`resolve` is pure. `locate` asks the file system or a bucket where a cluster keeps its graphs. Nothing here opens a
graph.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, assert_never

from omnigraph.cli.errors import UsageRefused
from omnigraph.cli.operator_config import OperatorConfig, Place
from omnigraph.errors import GraphNotFound

ScopeClass = Literal["any", "direct", "store", "cluster", "local"]
"""Which targets a command takes: `any` store, cluster, server or profile; `direct` store or cluster; `store` only a store
that stands alone; `cluster` a configuration folder or a cluster root; `local` no graph at all.
"""

_WORKS = {
    "any": "--store URI, or --cluster DIR --graph ID",
    "direct": "--store URI, or --cluster DIR --graph ID",
    "store": "--store URI",
    "cluster": "--config DIR or --cluster DIR",
    "local": "no address",
}


@dataclass(frozen=True, slots=True)
class Addressing:
    """The addressing options as given. `uri` is the positional one."""

    uri: str | None = None
    store: str | None = None
    server: str | None = None
    cluster: str | None = None
    graph: str | None = None
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class StoreTarget:
    uri: str
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterTarget:
    """`root` is a configuration folder, a storage root or an address; `graph` None asks for the only one."""

    root: str
    graph: str | None
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class ServerTarget:
    server: str
    graph: str | None
    branch: str | None = None


Target = StoreTarget | ClusterTarget | ServerTarget


def resolve(given: Addressing, config: OperatorConfig, environ: Mapping[str, str], takes: ScopeClass) -> Target:
    """The one target that the options mean. Raises UsageRefused with the spelling that works."""
    check_taken(given, takes)
    place = _explicit(given)
    if place is None:
        name = given.profile or environ.get("OMNIGRAPH_PROFILE")
        if name:
            place = config.profiles.get(name)
            if place is None:
                known = ", ".join(sorted(config.profiles)) or "none"
                raise UsageRefused(f"There is no profile '{name}'; the configuration has {known}.")
        else:
            place = config.defaults
    if given.graph is not None:
        if place.store is not None:
            raise UsageRefused("--graph goes with a cluster or a server; a store is one graph.")
        place = replace(place, default_graph=given.graph)
    return _target(place, config, takes)


def check_taken(given: Addressing, takes: ScopeClass) -> None:
    """Raises UsageRefused for options that exclude each other or that the command does not take."""
    named = {
        "the positional URI": given.uri,
        "--store": given.store,
        "--server": given.server,
        "--cluster": given.cluster,
        "--profile": given.profile,
    }
    present = [name for name, value in named.items() if value is not None]
    if takes == "local" and (present or given.graph is not None):
        raise UsageRefused(f"This command reads no graph: leave out {', '.join([*present, '--graph'][:1])}.")
    if len(present) > 1:
        raise UsageRefused(f"{' and '.join(present)} exclude each other.")
    if given.graph is not None and present and present[0] in ("the positional URI", "--store"):
        raise UsageRefused("--graph goes with a cluster or a server; a store is one graph.")


def _explicit(given: Addressing) -> Place | None:
    store = given.uri if given.uri is not None else given.store
    if store is not None:
        return Place(store=store)
    if given.cluster is not None:
        return Place(cluster=given.cluster)
    if given.server is not None:
        return Place(server=given.server)
    return None


def _target(place: Place, config: OperatorConfig, takes: ScopeClass) -> Target:
    target: Target
    if place.store is not None:
        target = StoreTarget(place.store, place.branch)
    elif place.cluster is not None:
        target = ClusterTarget(config.clusters.get(place.cluster, place.cluster), place.default_graph, place.branch)
    elif place.server is not None:
        target = ServerTarget(place.server, place.default_graph, place.branch)
    else:
        raise UsageRefused(f"Say where to act: {_WORKS[takes]}, --profile NAME, or defaults in the configuration.")
    match target:
        case ServerTarget():
            raise UsageRefused(
                f"Work through a server is not part of this version; this command takes {_WORKS[takes]}.",
                code="not_available",
            )
        case ClusterTarget() if takes == "store":
            raise UsageRefused(
                f"A cluster's graphs are made and changed by omnigraph cluster apply; this takes {_WORKS[takes]}."
            )
        case StoreTarget() if takes == "cluster":
            raise UsageRefused(f"This command works on a cluster; it takes {_WORKS[takes]}.")
        case _:
            return target


@dataclass(frozen=True, slots=True)
class Root:
    """A graph's root, ready to be opened.

    `lock_on`: the cluster root whose lock a writer takes. `local`: on this host and in no cluster, so that harm goes
    ahead unasked. `spelled`: the options that lead here again.
    """

    uri: str
    spelled: tuple[str, ...]
    branch: str | None = None
    lock_on: str | None = None
    local: bool = False

    def lock(self) -> AbstractContextManager[object]:
        """The right to write, held while the context lasts. Raises LockHeld at once if another process has it."""
        if self.lock_on is None:
            return nullcontext()
        from omnigraph.cluster.ownership import acquire

        return acquire(self.lock_on)

    @contextmanager
    def opening(self) -> Generator[None]:
        """Around opening the graph: what a cluster does not hold is told in its words. Raises GraphNotFound."""
        try:
            yield
        except GraphNotFound:
            if self.lock_on is None:
                raise
            from omnigraph.cluster.inventory import not_there

            raise not_there(self.lock_on, self.uri) from None


def locate(target: Target) -> Root:
    """Raises UsageRefused if a cluster holds several graphs and none was named, GraphNotFound for a name that no graph can
    have, InvalidConfig, StorageFailure.
    """
    match target:
        case StoreTarget(uri=uri, branch=branch):
            cluster = cluster_around(uri)
            local = "://" not in uri or uri.lower().startswith("file://")
            return Root(uri, ("--store", uri), branch, lock_on=cluster, local=local and cluster is None)
        case ClusterTarget(root=root, graph=graph, branch=branch):
            return _in_cluster(root, graph, branch)
        case ServerTarget():
            raise UsageRefused("Work through a server is not part of this version.", code="not_available")
        case _:
            assert_never(target)


def _in_cluster(root: str, graph: str | None, branch: str | None) -> Root:
    from omnigraph.cluster.config import graph_root, storage_root
    from omnigraph.cluster.inventory import not_held, stored_graphs
    from omnigraph.cluster.layout import is_graph_id

    storage = storage_root(root)
    if graph is None:
        graphs = stored_graphs(storage)
        if not graphs:
            raise UsageRefused("The cluster holds no graphs: omnigraph cluster apply makes what its folder declares.")
        if len(graphs) != 1:
            raise UsageRefused(f"Name the graph with --graph; the cluster holds {', '.join(graphs)}.")
        graph = graphs[0]
    if not is_graph_id(graph):
        raise not_held(storage, graph)
    return Root(graph_root(storage, graph), ("--cluster", root, "--graph", graph), branch, lock_on=storage)


def cluster_around(uri: str) -> str | None:
    """The cluster root that a local graph root lies in, if any. Only folders of this host are looked at: a bucket has no
    lock in this version.
    """
    if "://" in uri and not uri.lower().startswith("file://"):
        return None
    from omnigraph.store.uri import LocalRoot, parse_root

    address = parse_root(uri)
    if not isinstance(address, LocalRoot):
        return None
    for folder in Path(address.path).parents:
        if (folder / "__cluster").is_dir():
            return str(folder)
    return None
