"""What goes wrong below comes out as a class and a phase, never as a text (storage.md 6)."""

from __future__ import annotations

import errno
import glob
import os
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.errors import InternalError, OmnigraphError, StorageClass, StorageFailure, StoragePhase
from omnigraph.store.open import open_store
from omnigraph.tables.failures import RAISED_BELOW, storage_class, storage_failures
from omnigraph.tables.indexes import build_scalar_index, lookup_ids
from omnigraph.tables.store import TableStore
from support.proxy import Fault, S3Proxy, corrupt, lose_after, lose_before, refuse, truncate
from support.seaweed import S3Server
from tables.samples import ids, ports, write

PUT = "LanceError(IO): single PUT of g/data/1.lance failed after 2.5s (626 bytes): Generic S3 error: Error performing PUT "
STATUS = PUT + "http://h/b/g in 3ms, after 3 retries, max_retries: 3, retry_timeout: 180s  - Server returned non-2xx "

SAID = [
    (STATUS + "status code: 503 Service Unavailable: <Error><Code>SlowDown</Code></Error>", StorageClass.THROTTLED),
    (STATUS + "status code: 429 Too Many Requests: ", StorageClass.THROTTLED),
    (STATUS + "status code: 500 Internal Server Error: ", StorageClass.SERVER_ERROR),
    (STATUS + "status code: 403 Forbidden: ", StorageClass.DENIED),
    (STATUS + "status code: 401 Unauthorized: ", StorageClass.DENIED),
    (STATUS + "status code: 404 Not Found: ", StorageClass.NOT_FOUND),
    (STATUS + "status code: 408 Request Timeout: ", StorageClass.TIMEOUT),
    (STATUS + "status code: 501 Not Implemented: ", StorageClass.SERVER_ERROR),
    (STATUS + "status code: 400 Bad Request: ", StorageClass.UNSUPPORTED),
    (PUT + "http://h in 1s, after 3 retries, retry_timeout: 180s  - HTTP error: error sending request, x.rs:1", StorageClass.CONNECTION),
    ("LanceError(IO): Generic S3 error: HTTP error: request or response body error, x.rs:1", StorageClass.CONNECTION),
    ("LanceError(IO): The operation lacked the necessary privileges to complete for path g", StorageClass.DENIED),
    ("Not found: g/_versions/d1.manifest, x.rs:1", StorageClass.NOT_FOUND),
    ("External error: Not found: g/data/1.lance, x.rs:1", StorageClass.NOT_FOUND),
    ("Dataset at path g/_versions/d1.manifest was not found: Not found: g, x.rs:1", StorageClass.NOT_FOUND),
    ("External error: Encountered corrupt file g/_deletions/0-1-2.bin: unknown cookie value, x.rs", StorageClass.CORRUPT),
    ("External error: Invalid user input: file does not appear to be a Lance file (invalid magic: [1])", StorageClass.CORRUPT),
    ("LanceError(IO): file size is too small, x.rs:1", StorageClass.CORRUPT),
    ("LanceError(IO): does not have sufficient data, len: 0, bytes: b\"\", x.rs:1", StorageClass.CORRUPT),
    ("External error: LanceError(IO): Generic LocalFileSystem error: failed to fill whole buffer, x.rs", StorageClass.CORRUPT),
    ("External error: LanceError(IO): Generic memory error: Invalid range 0..1434 for object of size 717 bytes, x.rs", StorageClass.CORRUPT),
    ("Version not found error: version 3 not found", StorageClass.CORRUPT),
    ("Task was aborted", StorageClass.CORRUPT),
    ("External error: Lance reader producer terminated before end of stream", StorageClass.CORRUPT),
    ("External error: Encountered internal error. Please file a bug report at x. Invalid read of range 0..9 for fragment 0 with 3 addressable rows, x.rs:1:2", StorageClass.CORRUPT),
    ("LanceError(Schema): Field 'depth' (id=1) references parent id 9, which must appear earlier in the protobuf field list, x.rs:1:2", StorageClass.CORRUPT),
    ("External error: Invalid user input: Global buffer 0 range 1..9 is outside file of size 5, /r/lance/rust/lance-file/src/reader.rs:1:2", StorageClass.CORRUPT),
    ("External error: Invalid user input: Lance v2.1 page is missing its page layout, /r/lance-file/src/versions/v2_1/reader.rs:1:2", StorageClass.CORRUPT),
    ("External error: Invalid user input: Missing ColumnEncoding encoding location, /r/lance-file/src/reader/structural.rs:1:2", StorageClass.CORRUPT),
    ("External error: LanceError(Arrow): Invalid argument error: Invalid scalar value buffer: unexpected EOF, /r/lance-encoding/src/encodings/logical/primitive/constant.rs:1:2", StorageClass.CORRUPT),
    ("External error: LanceError(IO): Generic S3 error: HTTP error: error sending request, /r/lance-file/src/reader.rs:1:2", StorageClass.CONNECTION),
    ("External error: Not found: g/data/1.lance, /r/lance-file/src/reader.rs:1:2", StorageClass.NOT_FOUND),
    ("LanceError(IO): No space left on device (os error 28), x.rs:1", StorageClass.LOCAL_IO),
    ("LanceError(IO): Permission denied (os error 13), x.rs:1", StorageClass.DENIED),
    ("Too many concurrent writers. Attempted 13 times, but failed on retry_timeout of 30.000 seconds., x.rs", StorageClass.SERVER_ERROR),
    ("something that no one has seen yet", StorageClass.SERVER_ERROR),
    ("Invalid user input: No column named x", None),
    ("Append with different schema: fields did not match, missing=[__id], unexpected=[]", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "cls"), SAID)
@pytest.mark.parametrize("raised", [OSError, ValueError, RuntimeError, pa.ArrowInvalid])
def test_a_message_from_below_decides_the_class_whatever_exception_carries_it(
    text: str, cls: StorageClass | None, raised: type[Exception]
) -> None:
    assert storage_class(raised(text)) is cls


@pytest.mark.parametrize("name", ["timeout", "not found", "AccessDenied", "corrupt", "Invalid user input", "503"])
def test_a_name_chosen_by_a_user_decides_nothing(name: str) -> None:
    text = (
        f"LanceError(IO): Generic S3 error: Error performing PUT http://h/{name}/x - HTTP error: error sending request"
    )
    assert storage_class(OSError(text)) is StorageClass.CONNECTION


@pytest.mark.parametrize(
    ("number", "cls"),
    [
        (errno.ENOSPC, StorageClass.LOCAL_IO),
        (errno.EIO, StorageClass.LOCAL_IO),
        (errno.ENOENT, StorageClass.NOT_FOUND),
        (errno.EACCES, StorageClass.DENIED),
        (errno.EROFS, StorageClass.DENIED),
        (errno.ETIMEDOUT, StorageClass.TIMEOUT),
    ],
)
def test_an_error_of_the_operating_system_goes_by_its_number(number: int, cls: StorageClass) -> None:
    assert storage_class(OSError(number, os.strerror(number), "/some/path")) is cls


@pytest.mark.parametrize("raised", RAISED_BELOW)
@pytest.mark.parametrize("phase", [StoragePhase.READ, StoragePhase.STAGE])
def test_every_class_from_below_becomes_ours_and_carries_nothing_along(
    raised: type[Exception], phase: StoragePhase
) -> None:
    with pytest.raises(StorageFailure) as failed, storage_failures(phase):
        raise raised("http://secret/place")
    assert failed.value.phase is phase
    assert failed.value.effects == ("none" if phase is StoragePhase.STAGE else None)
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__
    assert "secret" not in str(failed.value) + str(failed.value.to_dict())


def test_a_panic_is_damage_and_whoever_ends_the_program_is_let_through() -> None:
    panic = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})
    with pytest.raises(StorageFailure) as failed, storage_failures(StoragePhase.STAGE):
        raise panic("called `Result::unwrap()` on an `Err` value: at /some/path")
    assert (failed.value.cls, failed.value.effects) == (StorageClass.CORRUPT, "none")
    assert "path" not in str(failed.value)
    for ending in (KeyboardInterrupt, SystemExit, GeneratorExit):
        with pytest.raises(ending), storage_failures(StoragePhase.READ):
            raise ending


def test_a_senseless_request_is_our_fault_and_other_errors_pass_unchanged() -> None:
    with pytest.raises(InternalError), storage_failures(StoragePhase.READ):
        raise OSError("Invalid user input: No column named x")
    with pytest.raises(KeyError), storage_failures(StoragePhase.READ):
        raise KeyError("x")
    ours = StorageFailure("x", cls=StorageClass.DENIED, phase=StoragePhase.STAGE)
    with pytest.raises(StorageFailure) as passed, storage_failures(StoragePhase.READ):
        raise ours
    assert passed.value is ours


# --- files that are gone or damaged


def gone(data: bytes) -> bytes | None:
    return None


def cut(data: bytes) -> bytes | None:
    return data[: len(data) // 2]


def empty(data: bytes) -> bytes | None:
    return b""


def flipped(data: bytes) -> bytes | None:
    return bytes(byte ^ 0x55 for byte in data)


@pytest.mark.parametrize("damage", [gone, cut, empty, flipped])
@pytest.mark.parametrize("file", ["data/*", "_versions/d*", "_deletions/*", "_indices/*/page_data.lance"])
def test_a_damaged_file_is_told_from_a_missing_one(
    tables: TableStore, tmp_path: Path, file: str, damage: Callable[[bytes], bytes | None]
) -> None:
    first = write(tables, None, ports(*(f"p{n}" for n in range(50))))
    pin = build_scalar_index(tables, write(tables, first.pin, remove=[1]).pin, "__id", label="main@4").pin
    for path in glob.glob(f"{tables.location.local_path}/{pin.path}/{file}"):
        damaged = damage(Path(path).read_bytes())
        os.unlink(path)
        if damaged is not None:
            Path(path).write_bytes(damaged)
    fresh = TableStore(open_store(tables.location.local_path or ""))
    reads = [
        lambda: fresh.open(pin).read(["__id", "name"]),
        lambda: lookup_ids(fresh.open(pin), ["p7"]),
        lambda: fresh.open(pin).scan(["name"]).read_all(),
        lambda: write(fresh, pin, remove=[2]),
    ]
    failures = [failure for read in reads if (failure := failure_of(read)) is not None]
    assert failures
    assert {failure.cls for failure in failures} == {StorageClass.NOT_FOUND if damage is gone else StorageClass.CORRUPT}
    assert all("nodes" not in str(failure) for failure in failures)


def test_a_full_disk_is_a_definite_failure_of_staging(tables: TableStore) -> None:
    done = write(tables, None, ports("ro"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
        failure = failure_of(lambda: write(tables, done.pin, ports("x" * 5000)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert failure is not None
    assert (failure.cls, failure.phase) == (StorageClass.LOCAL_IO, StoragePhase.STAGE)
    assert ids(tables, write(tables, done.pin, ports("le")).pin) == ["ro", "le"]


# --- a store that misbehaves


@pytest.fixture
def proxy(s3_server: S3Server, s3_root: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Proxy]:
    with S3Proxy(s3_server.endpoint) as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL", running.endpoint)
        yield running


FAULTS: list[tuple[str, Fault, str, StorageClass]] = [
    ("denied", refuse(403, "AccessDenied"), "data/", StorageClass.DENIED),
    ("denied", refuse(403, "AccessDenied"), "_transactions/", StorageClass.DENIED),
    ("denied", refuse(403, "AccessDenied"), "_versions/", StorageClass.DENIED),
    ("denied", refuse(403, "AccessDenied"), "_deletions/", StorageClass.DENIED),
    ("throttled", refuse(503, "SlowDown"), "_transactions/", StorageClass.THROTTLED),
    ("broken", refuse(500, "InternalError"), "data/", StorageClass.SERVER_ERROR),
    ("silent", lose_before(), "_transactions/", StorageClass.CONNECTION),
]


@pytest.mark.parametrize(
    ("fault", "file", "cls"), [each[1:] for each in FAULTS], ids=[f"{a} {c}" for a, _, c, _ in FAULTS]
)
def test_a_failed_request_of_staging_is_definite_and_the_next_write_succeeds(
    proxy: S3Proxy, s3_root: str, fault: Fault, file: str, cls: StorageClass
) -> None:
    tables = TableStore(open_store(s3_root))
    first = write(tables, None, ports("ro", "le"))
    proxy.break_next(fault, method="PUT", key=file, times=1000)
    failure = failure_of(lambda: write(tables, first.pin, ports("le", depth=2), remove=[1]))
    proxy.heal()
    assert failure is not None
    assert (failure.cls, failure.phase, failure.effects) == (cls, StoragePhase.STAGE, "none")
    second = write(tables, first.pin, ports("le", depth=3), remove=[1])
    assert tables.open(second.pin).read(["__id", "depth"]).to_pylist() == [
        {"__id": "ro", "depth": 1}, {"__id": "le", "depth": 3},
    ]  # fmt: skip


@pytest.mark.parametrize("file", ["data/", "_transactions/", "_versions/", "_deletions/"])
def test_a_lost_answer_leaves_one_version_that_opens(proxy: S3Proxy, s3_root: str, file: str) -> None:
    tables = TableStore(open_store(s3_root))
    first = write(tables, None, ports("ro", "le"))
    proxy.break_next(lose_after(), method="PUT", key=file)
    second = write(tables, first.pin, ports("le", depth=2), remove=[1])
    assert ids(TableStore(open_store(s3_root)), second.pin) == ["ro", "le"]


@pytest.mark.parametrize("fault", [corrupt(), truncate()], ids=["corrupt", "truncated"])
def test_an_answer_that_can_not_be_read_is_a_failure_of_reading(proxy: S3Proxy, s3_root: str, fault: Fault) -> None:
    done = write(TableStore(open_store(s3_root)), None, ports("ro"))
    proxy.break_next(fault, method="GET", key="data/", times=1000)
    failure = failure_of(lambda: ids(TableStore(open_store(s3_root)), done.pin))
    assert failure is not None
    assert failure.phase is StoragePhase.READ
    assert failure.cls in (StorageClass.CORRUPT, StorageClass.CONNECTION)


def failure_of(call: Callable[[], object]) -> StorageFailure | None:
    try:
        call()
    except StorageFailure as failure:
        return failure
    except OmnigraphError as other:
        raise AssertionError(f"not a storage failure: {other!r}") from other
    return None
