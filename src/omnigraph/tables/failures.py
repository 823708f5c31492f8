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
from typing import Final, Protocol

import pyarrow as pa

from omnigraph.errors import Effects, InternalError, StorageClass, StorageFailure, StoragePhase
from omnigraph.manifest.model import TablePin

RAISED_BELOW: Final = (OSError, ValueError, RuntimeError, NotImplementedError, pa.ArrowException)
"""Every exception class that pylance's binding and pyarrow raise, panics apart."""

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
        (
            r"must appear earlier in the protobuf field list|Invalid read of range [0-9.]+ for fragment",
            StorageClass.CORRUPT,
        ),
        (
            r"\) has [0-9]+ field ids but [0-9]+ column indices|Found unmasked nulls for non-nullable",
            StorageClass.CORRUPT,
        ),
        (r"^Version not found error: ", StorageClass.CORRUPT),  # the file of a version says that it is another one's
        (r"^Task was aborted$|reader producer terminated before end of stream", StorageClass.CORRUPT),  # a panic below
        (r"operation timed out|deadline has elapsed", StorageClass.TIMEOUT),
        (r"HTTP error: (?:error sending request|request or response body error)", StorageClass.CONNECTION),
        (r"lacked the necessary privileges|lacked valid authentication credentials", StorageClass.DENIED),
        (r"(?:^|error: |found: )Not found: |Object at location .* not found|was not found: ", StorageClass.NOT_FOUND),
        (r"(?:^|error: |\(IO\): )(?:Not supported|Unsupported|Not implemented)", StorageClass.UNSUPPORTED),
        # whatever the readers of files and of their encodings say, by where in the library it was said; last, since they
        # pass on what transport says too
        (
            r", \S*/lance-file/src/(?:(?:versions/\w+/)?reader(?:/\w+)?|datatypes|version)\.rs:[0-9]",
            StorageClass.CORRUPT,
        ),
        (r", \S*/lance-encoding/src/(?:decoder|encodings|buffer|data|format)\S*\.rs:[0-9]", StorageClass.CORRUPT),
    )
)

_DAMAGE: Final = frozenset({StorageClass.CORRUPT, StorageClass.NOT_FOUND, StorageClass.UNSUPPORTED, None})
"""What damage can look like: a changed name is that of no file, a changed number that of a later format."""

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


class Read(Protocol):
    """A table version that something is read of."""

    @property
    def pin(self) -> TablePin: ...

    def doubt(self) -> None:
        """What was read of it so far, and is remembered anywhere, may be wrong."""
        ...


def is_panic(error: BaseException) -> bool:
    """Whether native code gave up. The class is made anew by each native library and none of them exports it."""
    return type(error).__module__ == "pyo3_runtime" and type(error).__name__ == "PanicException"


def storage_class(error: BaseException) -> StorageClass | None:
    """What kind of failure an exception from below is; None if it says that the request made no sense.

    A panic is damage: the library trusts what it finds in its own files, and gives up where a file breaks that trust.
    """
    if is_panic(error):
        return StorageClass.CORRUPT
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
def storage_failures(phase: StoragePhase, *of: Read) -> Generator[None]:
    """Turns what the block lets escape from below into StorageFailure or InternalError; other errors pass unchanged.

    `of`: the versions that are read, as far as they are known.
    """
    try:
        yield
    except RAISED_BELOW as error:
        # `from None`: the cause's text may hold paths and addresses, and a traceback prints causes
        raise translated(error, phase, *of) from None
    except BaseException as error:  # panics are no Exceptions; whatever else there is passes
        if not is_panic(error):
            raise
        raise translated(error, phase, *of) from None


def translated(error: BaseException, phase: StoragePhase, *of: Read) -> StorageFailure | InternalError:
    """The error to raise instead of one from below. Versions in which damage may have been met are doubted."""
    cls = storage_class(error)
    if cls in _DAMAGE:
        for each in of:
            each.doubt()
    if cls is None:
        return InternalError("the table library refused a request of this program", effects=_effects(phase))
    if cls is StorageClass.NOT_FOUND and phase is StoragePhase.READ:
        return MissingTable(of[0].pin if len(of) == 1 else None)
    return StorageFailure(f"a table request failed ({cls})", cls=cls, phase=phase, effects=_effects(phase))


def _effects(phase: StoragePhase) -> Effects | None:
    return None if phase is StoragePhase.READ else "none"
