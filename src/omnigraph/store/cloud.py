"""An S3 bucket as a store: the only importer of the storage client.

Two clients per root. One repeats reads, listings, fresh puts and deletes: three times by itself, and what the store
still throttles three times more with growing pauses, sixteen requests at most. The other sends each conditional write
exactly once, so that "refused" is an answer to the only copy there is. What an error means is `classify`'s business;
whether to try again after a doubtful one is the caller's.

Two things the client hides and this module can't see: it follows a 303 answer to a PUT with a GET, and it reads any
well-formed XML as a listing, an empty one if it is none. No S3 store answers so; a proxy that does is unfit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, timedelta
from itertools import islice
from typing import TYPE_CHECKING, TypeVar, cast

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from omnigraph.ambient import Clock, SystemClock, random_bytes
from omnigraph.errors import InvalidRequest, StorageClass
from omnigraph.store.base import (
    Changed,
    Created,
    CreateOutcome,
    Exists,
    ObjectInfo,
    Refused,
    Replaced,
    ReplaceOutcome,
    StoredObject,
    StoreError,
    Unknown,
)
from omnigraph.store.classify import class_of_read, classify
from omnigraph.store.keys import checked_folder, checked_key, is_temporary, unspeakable
from omnigraph.store.s3_settings import S3Settings
from omnigraph.store.settings import StoreSettings
from omnigraph.store.uri import S3Root, encoded

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutMode
    from obstore.store import ClientConfig, S3Config

CLIENT_RETRIES = 3
THROTTLE_RETRIES = 3
PAGE = 1_000

_CONNECT_TIMEOUT_SECONDS = 5
_FIRST_PAUSE_SECONDS = 0.4
_READ_ERRORS = (BaseError, OSError)  # obstore says "not found" with the builtin FileNotFoundError

T = TypeVar("T")


class CloudStore:
    """Objects below a prefix of an S3 bucket. Thread-safe. Sends nothing until the first request."""

    def __init__(
        self,
        root: S3Root,
        s3: S3Settings,
        settings: StoreSettings | None = None,
        *,
        clock: Clock | None = None,
        randomness: Callable[[int], bytes] = random_bytes,
    ) -> None:
        self._root = root
        self._s3 = s3
        self._settings = settings or StoreSettings()
        self._clock = clock or SystemClock()
        self._randomness = randomness
        self._repeating = self._client(CLIENT_RETRIES)
        self._once = self._client(0)

    @classmethod
    def from_environment(
        cls, root: S3Root, settings: StoreSettings, storage_options: Mapping[str, str] | None = None
    ) -> CloudStore:
        """With the AWS_* variables of this process; options come before them. Raises InvalidRequest."""
        return cls(root, S3Settings.read(root.bucket, os.environ, storage_options or {}), settings)

    def _client(self, max_retries: int) -> S3Store:
        timeout = self._settings.request_timeout_seconds
        options: ClientConfig = {
            "allow_http": self._s3.allow_http,
            "timeout": timedelta(seconds=timeout),
            "connect_timeout": timedelta(seconds=min(timeout, _CONNECT_TIMEOUT_SECONDS)),
        }
        try:
            return S3Store(
                self._root.bucket,
                prefix=self._root.prefix or None,
                config=cast("S3Config", self._s3.client_config()),
                client_options=options,
                retry_config={"max_retries": max_retries},
            )
        except BaseError:
            # Which one is in a text that may repeat a value, so it stays below.
            raise InvalidRequest("the AWS_* settings can't be used as they are", code="invalid_setting") from None

    @property
    def uri(self) -> str:
        return self._root.uri

    @property
    def local_path(self) -> str | None:
        return None

    def lance_uri(self, key: str) -> str:
        """Lance reads the address as a URL: what it decodes must be the key as we send it."""
        return f"{self._root.uri}/{encoded(checked_key(key))}"

    def lance_storage_options(self) -> dict[str, str]:
        return self._s3.lance_options(self._settings.request_timeout_seconds)

    def probe_writable(self) -> None:
        return

    # --- reads

    def read(self, key: str) -> StoredObject:
        def request() -> StoredObject:
            result = obstore.get(self._repeating, checked_key(key))
            return StoredObject(result.bytes().to_bytes(), _info(result.meta, key))

        return self._repeated(request)

    def head(self, key: str) -> ObjectInfo:
        request = lambda: _info(obstore.head(self._repeating, checked_key(key)), key)  # noqa: E731
        return self._repeated(request, has_body=False)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        return self._listed(checked_folder(prefix), start_after, PAGE)

    def list_first(self, prefix: str) -> ObjectInfo | None:
        return next(self._listed(checked_folder(prefix), None, 1), None)

    def list_folders(self, prefix: str) -> list[str]:
        folder = checked_folder(prefix)
        client = self._repeating
        found = self._repeated(lambda: obstore.list_with_delimiter(client, folder or None))  # pyright: ignore[reportUnknownMemberType]
        names = [path.rstrip("/").rpartition("/")[2] for path in found["common_prefixes"]]
        return sorted(name for name in names if not unspeakable(name))

    def _listed(self, folder: str, start_after: str | None, chunk: int) -> Iterator[ObjectInfo]:
        """Page by page. After a throttled page the listing goes on behind the last key it gave."""
        last = start_after
        attempt = 0
        while True:
            try:
                stream = obstore.list(self._repeating, folder or None, offset=last, chunk_size=chunk)  # pyright: ignore[reportUnknownMemberType]
                for objects in stream:
                    for meta in objects:
                        last, attempt = meta["path"], 0
                        if not is_temporary(last) and not unspeakable(last):
                            yield _info(meta, last)
                return
            except _READ_ERRORS as error:
                self._pause_or_raise(error, attempt)
                attempt += 1

    def _repeated(self, request: Callable[[], T], *, has_body: bool = True) -> T:
        """The request's result. Repeated, after the client's own repetitions, while the store throttles it or breaks
        its answer off.
        """
        attempt = 0
        while True:
            try:
                return request()
            except _READ_ERRORS as error:
                self._pause_or_raise(error, attempt, has_body=has_body)
                attempt += 1

    def _pause_or_raise(self, error: Exception, attempt: int, *, has_body: bool = True) -> None:
        failure = classify(error)
        cls = class_of_read(failure, has_body=has_body)
        repeatable = cls is StorageClass.THROTTLED or failure.half_answer
        if not repeatable or attempt == THROTTLE_RETRIES:
            raise StoreError(cls) from None
        # Between half of a pause that doubles and all of it, so that many clients do not come back together.
        share = 0.5 + int.from_bytes(self._randomness(2)) / 0x20000
        self._clock.sleep(_FIRST_PAUSE_SECONDS * 2**attempt * share)

    # --- writes

    def put_fresh(self, key: str, data: bytes) -> None:
        self._repeated(lambda: obstore.put(self._repeating, checked_key(key), data, use_multipart=False))

    def create(self, key: str, data: bytes) -> CreateOutcome:
        match self._put_once(key, data, "create"):
            case str() as etag:
                return Created(etag)
            case None:
                return Exists()
            case failed:
                return failed

    def replace(self, key: str, data: bytes, *, etag: str) -> ReplaceOutcome:
        match self._put_once(key, data, {"e_tag": etag}):
            case str() as new_etag:
                return Replaced(new_etag)
            case None:
                return Changed()
            case failed:
                return failed

    def _put_once(self, key: str, data: bytes, mode: PutMode) -> str | Refused | Unknown | None:
        """One request: the new ETag, None if the condition failed, or what is known otherwise."""
        checked_key(key)
        try:
            etag = obstore.put(self._once, key, data, mode=mode, use_multipart=False)["e_tag"]
        except Exception as error:
            # Every error, on purpose: the request may have left, and one that nobody foresaw must come out as doubt.
            failure = classify(error)
            if failure.condition_failed:
                return None
            return Refused(failure.cls, failure.sent) if failure.definite else Unknown(failure.cls)
        return etag or Unknown(StorageClass.SERVER_ERROR)

    def delete(self, keys: Iterable[str]) -> None:
        remaining = iter(keys)
        while batch := [checked_key(key) for key in islice(remaining, PAGE)]:
            self._delete_batch(batch)

    def _delete_batch(self, keys: list[str]) -> None:
        self._repeated(lambda: obstore.delete(self._repeating, keys))


def _info(meta: ObjectMeta, key: str) -> ObjectInfo:
    if meta["last_modified"].timestamp() == 0:
        # The client's word for an answer without a time; no store sends that, so something else answered.
        raise StoreError(StorageClass.SERVER_ERROR)
    return ObjectInfo(key, meta["size"], meta["e_tag"], meta["last_modified"].astimezone(UTC))
