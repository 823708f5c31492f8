"""The schema objects of a graph root: `__schema/<digest>.pg` and `<digest>.json`, named by their content.

They are put before anything names them and never change or go, so a catalog read once is kept for good.
"""

from __future__ import annotations

import threading

from omnigraph.engine.evidence import staging_begins
from omnigraph.errors import StorageClass, StorageFailure, StoragePhase
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.catalog_json import catalog_from_json, catalog_to_json, schema_digest
from omnigraph.manifest.failures import read_failure
from omnigraph.store.base import Store, StoreError

_FOLDER = "__schema"


class SchemaStore:
    """Catalogs and sources by digest, of one graph. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._catalogs: dict[str, Catalog] = {}
        self._sources: dict[str, str] = {}
        self._lock = threading.Lock()

    def put(self, source: str, catalog: Catalog) -> str:
        """Stores both objects and returns the digest. Two fresh puts. Raises StorageFailure (phase stage)."""
        digest = schema_digest(source, catalog)
        staging_begins()
        try:
            self._store.put_fresh(f"{_FOLDER}/{digest}.pg", source.encode("utf-8"))
            self._store.put_fresh(f"{_FOLDER}/{digest}.json", catalog_to_json(catalog).encode("utf-8"))
        except StoreError as error:
            raise StorageFailure(
                "The schema could not be stored.", cls=error.cls, phase=StoragePhase.STAGE, effects="none"
            ) from None
        with self._lock:
            self._catalogs[digest] = catalog
            self._sources[digest] = source
        return digest

    def catalog(self, digest: str) -> Catalog:
        """The compiled schema. One GET when it is not known yet. Raises StorageFailure (phase read)."""
        with self._lock:
            known = self._catalogs.get(digest)
        if known is not None:
            return known
        text = self._read(f"{digest}.json")
        try:
            catalog = catalog_from_json(text)
        except (ValueError, KeyError, TypeError):
            raise StorageFailure(
                "The compiled schema in storage is damaged.", cls=StorageClass.CORRUPT, phase=StoragePhase.READ
            ) from None
        with self._lock:
            return self._catalogs.setdefault(digest, catalog)

    def source(self, digest: str) -> str:
        """The schema text as it was accepted: text and catalog have the digest that names them.

        One GET when it is not known yet, after the catalog. Raises StorageFailure (phase read).
        """
        with self._lock:
            known = self._sources.get(digest)
        if known is not None:
            return known
        catalog = self.catalog(digest)
        text = self._read(f"{digest}.pg")
        if schema_digest(text, catalog) != digest:  # half a text may be a schema, too: one of fewer types
            raise StorageFailure("The schema in storage is damaged.", cls=StorageClass.CORRUPT, phase=StoragePhase.READ)
        with self._lock:
            return self._sources.setdefault(digest, text)

    def _read(self, name: str) -> str:
        try:
            return self._store.read(f"{_FOLDER}/{name}").data.decode("utf-8")
        except StoreError as error:
            if error.cls is not StorageClass.NOT_FOUND:
                raise read_failure(error.cls, "the schema of this graph") from None
            raise StorageFailure(
                "A schema of this graph is missing in storage. Someone must put the graph's files back from a copy.",
                cls=error.cls,
                phase=StoragePhase.READ,
                retry="recover",
            ) from None
        except UnicodeDecodeError:
            raise StorageFailure(
                "The schema in storage is damaged.", cls=StorageClass.CORRUPT, phase=StoragePhase.READ
            ) from None
