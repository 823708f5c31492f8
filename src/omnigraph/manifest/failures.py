"""Failed reads of this room, as the errors that people see. The store's own text never gets into them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from omnigraph.errors import StorageClass, StorageFailure, StoragePhase
from omnigraph.store.base import StoreError

_SAID = {
    StorageClass.THROTTLED: "the storage asks for fewer requests",
    StorageClass.TIMEOUT: "the storage did not answer in time",
    StorageClass.CONNECTION: "the storage can't be reached",
    StorageClass.DENIED: "the storage denies access",
    StorageClass.NOT_FOUND: "the storage does not have it",
    StorageClass.SERVER_ERROR: "the storage reports a failure of its own",
    StorageClass.CORRUPT: "what the storage returned is damaged",
    StorageClass.UNSUPPORTED: "the storage does not support the request",
    StorageClass.LOCAL_IO: "the disk reports an error",
}


def read_failure(cls: StorageClass, what: str) -> StorageFailure:
    """The error for a read that failed; `what` names the thing read in words of the product."""
    return StorageFailure(f"Can't read {what}: {_SAID[cls]}. Nothing was changed", cls=cls, phase=StoragePhase.READ)


@contextmanager
def reading(what: str) -> Generator[None]:
    """Turns StoreError into StorageFailure of phase `read`. An absent object is a failure here: it was named."""
    try:
        yield
    except StoreError as error:
        raise read_failure(error.cls, what) from None
