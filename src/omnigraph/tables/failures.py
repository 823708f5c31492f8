"""What the table library and the operating system raise, read once: the only place that looks at their words.

    with storage_failures(StoragePhase.READ):
        dataset.scanner(...).to_table()

Whatever comes out is a `StorageFailure` with a class and a phase, or an `InternalError` when the library says that we
asked for something senseless. Texts from below may name paths and addresses, so they decide the class and go no
further. A failure here is always definite for the graph: nothing that this room writes is visible before a manifest
names it.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from omnigraph.errors import Effects, InternalError, StorageClass, StorageFailure, StoragePhase
from omnigraph.manifest.model import TablePin

RAISED_BELOW: Final = (OSError, ValueError, RuntimeError, NotImplementedError, pa.ArrowException)
"""Every exception class that pylance's binding and pyarrow raise. Its panics are BaseExceptions and stay panics."""

_ERRNO: Final[dict[int, StorageClass]] = {
    errno.ENOENT: StorageClass.NOT_FOUND,
    errno.EACCES: StorageClass.DENIED,
    errno.EPERM: StorageClass.DENIED,
    errno.EROFS: StorageClass.DENIED,
    errno.ETIMEDOUT: StorageClass.TIMEOUT,
    errno.ECONNREFUSED: StorageClass.CONNECTION,
    errno.ECONNRESET: StorageClass.CONNECTION,
    errno.EPIPE: StorageClass.CONNECTION,
}

# Whole phrases of the libraries below, never single words: a message also holds names that users chose.
_STATUS: Final = re.compile(r"Server returned non-2xx status code: (?P<status>[1-5][0-9]{2})\b")
_OS_ERROR: Final = re.compile(r"\(os error (?P<errno>[0-9]+)\)")
_PHRASES: Final[tuple[tuple[re.Pattern[str], StorageClass], ...]] = tuple(
    (re.compile(pattern), cls)
    for pattern, cls in (
        (r"Encountered corrupt file|\(invalid magic: |file does not appear to be a Lance file", StorageClass.CORRUPT),
        (r"failed to fill whole buffer|LanceError\(IO\): file size is too small", StorageClass.CORRUPT),
        (r"Invalid range [0-9.]+ for object of size|Range started at [0-9]+ and ended at", StorageClass.CORRUPT),
        (r"LanceError\(IO\): does not have sufficient data|failed to decode Protobuf", StorageClass.CORRUPT),
        (r"operation timed out|deadline has elapsed", StorageClass.TIMEOUT),
        (r"HTTP error: (?:error sending request|request or response body error)", StorageClass.CONNECTION),
        (r"lacked the necessary privileges|lacked valid authentication credentials", StorageClass.DENIED),
        (r"(?:^|error: |found: )Not found: |Object at location .* not found|was not found: ", StorageClass.NOT_FOUND),
        (r"(?:^|error: |\(IO\): )(?:Not supported|Unsupported|Not implemented)", StorageClass.UNSUPPORTED),
    )
)

_MISUSE: Final = re.compile(
    r"^(?:External error: )?(?:Invalid user input: |LanceError\(Schema\)|Schema error: |Append with different schema: )"
)


class MissingTable(StorageFailure):
    """What a pin names is not there: no repetition helps. `pin` is None where two versions were being compared."""

    def __init__(self, pin: TablePin | None, what: str = "of a table") -> None:
        super().__init__(
            f"Stored data {what} is missing. Someone must put the graph's files back from a copy; types whose files are"
            " there can still be read.",
            cls=StorageClass.NOT_FOUND,
            phase=StoragePhase.READ,
            retry="recover",
        )
        self.pin = pin


def storage_class(error: BaseException) -> StorageClass | None:
    """What kind of failure an exception from below is; None if it says that the request made no sense."""
    text = str(error)
    if isinstance(error, OSError) and error.errno is not None:
        return _ERRNO.get(error.errno, StorageClass.LOCAL_IO)
    os_error = _OS_ERROR.search(text)
    if os_error is not None:
        return _ERRNO.get(int(os_error["errno"]), StorageClass.LOCAL_IO)
    status = _STATUS.search(text)
    if status is not None:
        return _class_of_status(int(status["status"]))
    for pattern, cls in _PHRASES:
        if pattern.search(text):
            return cls
    if _MISUSE.search(text):
        return None
    return StorageClass.UNSUPPORTED if isinstance(error, NotImplementedError) else StorageClass.SERVER_ERROR


def _class_of_status(status: int) -> StorageClass:
    match status:
        case 401 | 403:
            return StorageClass.DENIED
        case 404:
            return StorageClass.NOT_FOUND
        case 408:
            return StorageClass.TIMEOUT
        case 429 | 503:
            return StorageClass.THROTTLED
        case _ if status < 500:
            return StorageClass.UNSUPPORTED
        case _:
            return StorageClass.SERVER_ERROR


@contextmanager
def storage_failures(phase: StoragePhase, pin: TablePin | None = None) -> Generator[None]:
    """Turns what the block lets escape from below into StorageFailure or InternalError; other errors pass unchanged.

    `pin`: the version that is read.
    """
    try:
        yield
    except RAISED_BELOW as error:
        # `from None`: the cause's text may hold paths and addresses, and a traceback prints causes
        raise translated(error, phase, pin) from None


def translated(
    error: BaseException, phase: StoragePhase, pin: TablePin | None = None
) -> StorageFailure | InternalError:
    """The error to raise instead of one from below."""
    cls = storage_class(error)
    if cls is None:
        return InternalError("the table library refused a request of this program", effects=_effects(phase))
    if cls is StorageClass.NOT_FOUND and phase is StoragePhase.READ:
        return MissingTable(pin)
    return StorageFailure(f"a table request failed ({cls})", cls=cls, phase=phase, effects=_effects(phase))


def _effects(phase: StoragePhase) -> Effects | None:
    return None if phase is StoragePhase.READ else "none"
