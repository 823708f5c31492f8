"""Making a graph root and opening one (storage.md 1).

__graph.json      created once, only if absent: format, graph id, time
version 1 of main makes it a graph; everything before that is taken over by the next init
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from os import PathLike
from typing import Any

from omnigraph.ambient import Clock, SystemClock, fresh_ulid, random_hex
from omnigraph.embed.embedder import Embedder
from omnigraph.engine.core import GraphCore
from omnigraph.engine.environment import ProcessSettings
from omnigraph.engine.evidence import staging_begins
from omnigraph.engine.lanes import lanes_of
from omnigraph.engine.logs import log_event
from omnigraph.engine.schema_change import mint_id
from omnigraph.engine.writing.publication import publish_version
from omnigraph.errors import (
    AlreadyExists,
    FormatMismatch,
    GraphNotFound,
    OutcomeUnknown,
    StorageClass,
    StorageFailure,
    StoragePhase,
)
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.schema.migration import plan_migration
from omnigraph.manifest.builder import MAIN, CommitDraft, genesis
from omnigraph.manifest.chain import KnownHead, NoHead, resolve_head
from omnigraph.manifest.codec import FORMAT
from omnigraph.manifest.jsonvalue import Malformed, as_int, as_text, parsed
from omnigraph.manifest.publish import PAUSES_SECONDS, FenceState, Published
from omnigraph.query.residency import Residency
from omnigraph.store.base import Created, Exists, Refused, Store, StoreError, Unknown
from omnigraph.store.open import open_store
from omnigraph.store.probe import Capable, Incapable, Unproven, probe
from omnigraph.tables.store import TableStore, new_session

_LOGGER = "omnigraph.opening"

GRAPH_KEY = "__graph.json"


_PROBE_FOLDER = "__probe"


def open_core(
    uri: str | PathLike[str],
    *,
    writable: bool = True,
    owner: bool = False,
    storage_options: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    fence: Callable[[], FenceState] | None = None,
    store: Store | None = None,
) -> GraphCore:
    """Open the graph at a root: one LIST and one GET, which find the head of `main`; on a local root also its identity.

    Raises GraphNotFound, FormatMismatch, InvalidRequest (address, settings), StorageFailure (`unsupported` for a local
    filesystem without hard links, if `writable`).
    """
    process = ProcessSettings.from_environment()
    store = store or open_store(uri, storage_options=storage_options)
    clock = clock or SystemClock()
    try:
        head = resolve_head(store, MAIN, clock=clock)
    except StorageFailure as failure:
        graph_id = _standing_identity(store) if failure.cls is StorageClass.CORRUPT else None
        if graph_id is None:
            raise
        # the newest version of main is damaged: whoever asks for it is told, older commits and other branches still read
        return _core(store, graph_id, process, owner=owner, clock=clock, fence=fence)
    if isinstance(head, NoHead):
        raise GraphNotFound("There is no graph at this address. Make one with `omnigraph init`.")
    if writable and store.local_path is not None:
        _check_links(store)
    return _opened(store, head, process, owner=owner, clock=clock, fence=fence)


def _opened(
    store: Store,
    head: KnownHead,
    process: ProcessSettings,
    *,
    owner: bool,
    clock: Clock,
    fence: Callable[[], FenceState] | None,
) -> GraphCore:
    """The graph that ends in `head`, or the one that stands here where the two differ: then `main` is refused to whoever
    asks for it, as one that is damaged is. An object store is not asked, since opening costs enough requests there.
    """
    graph_id = head.manifest.graph
    stands_here = graph_id if store.local_path is None else _readable_identity(store) or graph_id
    core = _core(store, stands_here, process, owner=owner, clock=clock, fence=fence)
    if stands_here == graph_id:
        core.heads.adopt(head)
    return core


def init_core(
    uri: str | PathLike[str],
    schema: str,
    *,
    actor: str | None = None,
    exist_ok: bool = False,
    owner: bool = False,
    storage_options: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    fence: Callable[[], FenceState] | None = None,
    store: Store | None = None,
) -> GraphCore:
    """Make a graph with this schema and open it.

    Raises InvalidSchema before anything is written; AlreadyExists (`already_initialized`) unless `exist_ok`: then the
    existing graph is opened, and refused likewise if its schema means something else; StorageFailure; OutcomeUnknown,
    after which init may simply be repeated.
    """
    process = ProcessSettings.from_environment()
    catalog = compile_schema(schema, mint=mint_id)
    clock = clock or SystemClock()
    store = store or open_store(uri, storage_options=storage_options)
    captured_at = clock.boot_seconds()
    head = resolve_head(store, MAIN, clock=clock)
    if isinstance(head, NoHead):
        staging_begins()
        _probe(store, clock)
        graph_id = _identity(store, clock)
        core = _core(store, graph_id, process, owner=owner, clock=clock, fence=fence)
        digest = core.schemas.put(schema, catalog)
        draft = CommitDraft(nonce=random_hex(16), kind="genesis", actor=actor)
        built = genesis(graph=graph_id, schema=digest, draft=draft, now_us=clock.now_us(), nonce=random_hex(32))
        result = publish_version(core, built, head, staged_at=captured_at, kind="init")
        if isinstance(result, Published):
            return core
        head = result.actual
    if not exist_ok:
        raise AlreadyExists("There is a graph at this address already.", code="already_initialized")
    core = _opened(store, head, process, owner=owner, clock=clock, fence=fence)
    accepted = head.manifest.schema
    if plan_migration(core.schemas.catalog(accepted), core.schemas.source(accepted), schema, mint=mint_id).steps:
        what = "There is a graph with another schema at this address: open it, and change that by `schema.apply`."
        raise AlreadyExists(what, code="already_initialized")
    return core


@cache
def _session() -> Any:
    return new_session()


@cache
def _residency() -> Residency:
    return Residency()


def _core(
    store: Store,
    graph_id: str,
    process: ProcessSettings,
    *,
    owner: bool,
    clock: Clock,
    fence: Callable[[], FenceState] | None,
) -> GraphCore:
    """All graphs of a process share one table session and one memory budget."""
    core = GraphCore(
        store=store,
        tables=TableStore(store, session=_session(), local_sync=process.store.local_sync, clock=clock),
        graph_id=graph_id,
        owner=owner,
        clock=clock,
        residency=_residency(),
        limits=process.loads,
        settings=process.requests,
        lanes=lanes_of(store),
        embedder=None if process.embeddings is None else Embedder(process.embeddings, clock=clock),
    )
    if fence is not None:
        core.fence = fence
    return core


def _identity(store: Store, clock: Clock) -> str:
    """The graph id that stands at the root, or a new one. Raises StorageFailure, FormatMismatch, OutcomeUnknown.

    The identical request is sent again while nobody knows whether it was done, as a publication's is.
    """
    graph_id = fresh_ulid(clock)
    fields = {"format": FORMAT, "graph_id": graph_id, "created_at": clock.now_us()}
    data = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
    doubt = False
    cls: StorageClass | None = None
    for attempt, pause in enumerate((0.0, *PAUSES_SECONDS)):
        if doubt:
            log_event(
                _LOGGER,
                "warning",
                "identity request outcome unknown; re-issuing the identical conditional request",
                **{"class": "unknown" if cls is None else str(cls)},
                attempt=attempt,
                pause_ms=round(pause * 1000),
                phase=str(StoragePhase.PUBLISH),
            )
            clock.sleep(pause)
        outcome = store.create(GRAPH_KEY, data)
        if isinstance(outcome, Created):
            return graph_id
        if isinstance(outcome, Refused) and not doubt:
            what = "refused to make a graph here" if outcome.sent else "could not be reached; no graph was made"
            raise StorageFailure(f"The store {what}.", cls=outcome.cls, phase=StoragePhase.PUBLISH, effects="none")
        found = None if isinstance(outcome, Unknown) else _identity_met(store)
        if found is not None:
            return found
        doubt, cls = True, None if isinstance(outcome, Exists) else outcome.cls
    found = _identity_met(store)
    if found is None:
        raise OutcomeUnknown(
            "It is not known whether the graph's identity was stored. Repeat this: it takes over what stands there.",
            kind="init",
            branch=None,
            base_commit_id=None,
            graph_commit_id=None,
            cls=cls,
        )
    return found


def _identity_met(store: Store) -> str | None:
    """What stands in the way; None if nothing does, or nobody knows. Raises StorageFailure (`corrupt`), FormatMismatch."""
    try:
        return _standing_identity(store)
    except StorageFailure as failure:
        if failure.cls is StorageClass.CORRUPT:
            raise
        return None


def _readable_identity(store: Store) -> str | None:
    try:
        return _standing_identity(store)
    except StorageFailure:
        return None  # it says nothing against the head


def _standing_identity(store: Store) -> str | None:
    try:
        data = store.read(GRAPH_KEY).data
    except StoreError as error:
        if error.cls is StorageClass.NOT_FOUND:
            return None
        raise StorageFailure("The graph's identity can't be read.", cls=error.cls, phase=StoragePhase.READ) from None
    try:
        fields = parsed(data)
        written, graph_id = as_int(fields.get("format"), "format"), as_text(fields.get("graph_id"), "graph_id")
    except Malformed:
        raise StorageFailure(
            f"The file {GRAPH_KEY} at this address is damaged; no graph was made. Remove it and repeat.",
            cls=StorageClass.CORRUPT,
            phase=StoragePhase.READ,
        ) from None
    if written > FORMAT:
        raise FormatMismatch(
            f"The graph at this address has format {written}; this program knows formats up to {FORMAT}."
        )
    return graph_id


def _probe(store: Store, clock: Clock) -> None:
    """Refuse a store that can't keep the one promise, before any graph file remains. Raises StorageFailure."""
    if store.local_path is not None:
        _check_links(store, also_denied=True)
        return
    outcome = probe(store, _PROBE_FOLDER, clock=clock)
    match outcome:
        case Capable():
            return
        case Incapable(reason=reason):
            raise StorageFailure(
                f"This store can't hold a graph: {reason}.",
                cls=StorageClass.UNSUPPORTED,
                phase=StoragePhase.PUBLISH,
                effects="none",
            )
        case Unproven(cls=cls):
            raise StorageFailure(
                "The store did not answer a test of its conditional writes; no graph was made.",
                cls=cls,
                phase=StoragePhase.PUBLISH,
                effects="none",
            )


def _check_links(store: Store, *, also_denied: bool = False) -> None:
    try:
        store.probe_writable()
    except StoreError as error:
        if error.cls is StorageClass.UNSUPPORTED:
            message = "This filesystem has no hard links, without which a commit can't be made visible in one step."
        elif also_denied:
            message = "This folder can't be written to."
        else:
            return  # a graph on a read-only disk can be read; a write will say what is wrong
        raise StorageFailure(message, cls=error.cls, phase=StoragePhase.PUBLISH, effects="none") from None
