"""Lower layers that fail and say too much: every call of this package into them can be made to raise a hostile text.

    with Boundary() as boundary:
        operation()                              # notes the places that were reached
        for place in boundary.reached():
            with boundary.failing(place) as met:
                operation()

A place is a line of the package and what it calls there. Calls from elsewhere, the library's own included, are let pass.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import errno
import functools
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import lance
import lance.fragment
import obstore
import obstore.exceptions
import pyarrow as pa

import omnigraph

SECRET = "hunter2"
TEXT = (
    f"HTTP status 403 for s3://{SECRET}-bucket/{SECRET}/graphs?X-Amz-Signature={SECRET}&AWSAccessKeyId=AKIA{SECRET}: "
    f"<Error><Code>AccessDenied</Code><Message>{SECRET}</Message></Error> at /srv/{SECRET}/private (os error 13)"
)
PACKAGE = Path(omnigraph.__file__).parent
LIBRARIES = {"obstore": "obstore", "pyarrow": "pa", "pyarrow.compute": "pc", "os": "os", "lance": "lance"}

_OS_CALLS = (
    "open close stat fstat fsync scandir listdir mkdir makedirs rmdir rename replace link unlink pread pwrite ftruncate"
).split()
# What asks storage. An opened dataset lists its fragments from memory.
_METHODS: tuple[tuple[str, type, tuple[str, ...]], ...] = (
    (
        "lance",
        lance.LanceDataset,
        (
            *("__init__", "commit", "scanner"),
            *("describe_indices", "create_index_uncommitted", "merge_existing_index_segments", "read_transaction"),
        ),
    ),
    ("lance", lance.fragment.LanceFragment, ("scanner", "take")),
    (
        "lance",
        lance.LanceScanner,
        ("to_table", "to_reader"),
    ),
)


_NEVER_FAIL = frozenset(
    (
        "binary bool_ field fixed_shape_tensor float32 float64 int32 int64 large_binary large_string list_ list_size "
        "schema string struct timestamp uint32 uint64 unify_schemas"
    ).split()
)
"""Words for types, which fail for nobody."""


def _raised_by(library: str, number: int) -> BaseException:
    """One of the exceptions that a library raises, another for each number."""
    kinds: dict[str, tuple[Callable[[], BaseException], ...]] = {
        "obstore": (
            lambda: obstore.exceptions.GenericError(TEXT),
            lambda: obstore.exceptions.PermissionDeniedError(TEXT),
            lambda: FileNotFoundError(TEXT),
            lambda: obstore.exceptions.UnauthenticatedError(TEXT),
        ),
        "os": (
            lambda: OSError(errno.EIO, os.strerror(errno.EIO), f"/srv/{SECRET}/private"),
            lambda: PermissionError(errno.EACCES, os.strerror(errno.EACCES), f"/srv/{SECRET}/private"),
        ),
        "lance": (
            lambda: OSError(TEXT),
            lambda: ValueError(TEXT),
            lambda: RuntimeError(TEXT),
            lambda: pa.ArrowInvalid(TEXT),
        ),
        "pyarrow": (lambda: pa.ArrowInvalid(TEXT), lambda: pa.ArrowNotImplementedError(TEXT)),
        "duckdb": (lambda: duckdb.IOException(TEXT), lambda: duckdb.OutOfMemoryException(TEXT)),
    }
    choices = kinds[library]
    return choices[number % len(choices)]()


@dataclass(frozen=True)
class Place:
    """`where` is `module:line`, `library` one of the keys above, `call` what is called there."""

    library: str
    call: str
    where: str

    def __str__(self) -> str:
        return f"{self.where} {self.library}.{self.call}"


class Boundary:
    """Patched libraries, until the block ends. One operation at a time; its own threads may be many."""

    def __init__(self) -> None:
        self._patched = contextlib.ExitStack()
        self._reached: dict[Place, None] = {}
        self._failing: Place | None = None
        self._error: BaseException | None = None
        self.met = 0
        self._guard = threading.Lock()

    def __enter__(self) -> Boundary:
        for library, module, name in _called_functions():
            self._patch(library, module, name)
        for name in _OS_CALLS:
            self._patch("os", os, name)
        self._patch("os", builtins, "open")
        for library, owner, names in _METHODS:
            for name in names:
                self._patch(library, owner, name)
        self._patch_duckdb()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._patched.close()

    def reached(self) -> list[Place]:
        """The places that were reached since this was last asked, in order."""
        with self._guard:
            found, self._reached = list(self._reached), {}
        return found

    @contextlib.contextmanager
    def failing(self, place: Place, number: int = 0) -> Iterator[None]:
        """Whenever this place is reached, it fails. `met` counts how often."""
        self.met = 0
        self._failing, self._error = place, _raised_by(place.library, number)
        try:
            yield
        finally:
            self._failing = self._error = None

    def _patch(self, library: str, owner: Any, name: str) -> None:
        really = owner.__dict__[name] if isinstance(owner, type) else getattr(owner, name)
        bound = isinstance(really, (classmethod, staticmethod))
        call = really.__func__ if bound else really

        @functools.wraps(call)
        def wrapped(*given: Any, **named: Any) -> Any:
            self._pass(library, name)
            return call(*given, **named)

        setattr(owner, name, type(really)(wrapped) if bound else wrapped)
        self._patched.callback(setattr, owner, name, really)

    def _patch_duckdb(self) -> None:
        really = duckdb.connect

        def connect(*given: Any, **named: Any) -> Any:
            self._pass("duckdb", "connect")
            return _Connection(self, really(*given, **named))

        duckdb.connect = connect
        self._patched.callback(setattr, duckdb, "connect", really)

    def _pass(self, library: str, call: str) -> None:
        """Note a call of the package's own, and fail if this is its turn."""
        frame = sys._getframe(2)
        path = frame.f_code.co_filename
        if not path.startswith(str(PACKAGE)):
            return
        where = f"{path[len(str(PACKAGE)) + 1 :]}:{frame.f_lineno}"
        place = Place(library, call, where)
        with self._guard:
            self._reached[place] = None
            fails = place == self._failing
            self.met += fails
        if fails:
            assert self._error is not None
            raise self._error


class _Connection:
    """A DuckDB connection whose statements can fail."""

    def __init__(self, boundary: Boundary, inner: Any) -> None:
        self._boundary = boundary
        self._inner = inner

    def cursor(self) -> _Connection:
        return _Connection(self._boundary, self._inner.cursor())

    def sql(self, *given: Any) -> Any:
        self._boundary._pass("duckdb", "sql")
        return self._inner.sql(*given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _called_functions() -> Iterator[tuple[str, Any, str]]:
    """Functions of the libraries that some line of the package calls by the library's name."""
    found: set[tuple[str, str]] = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = node.func.value
                if isinstance(owner, ast.Name):
                    found.update((module, node.func.attr) for module, alias in LIBRARIES.items() if alias == owner.id)
    for module_name, name in sorted(found):
        if module_name == "os" or name in _NEVER_FAIL:
            continue
        module = importlib.import_module(module_name)
        function = getattr(module, name, None)
        if function is not None and not isinstance(function, type):
            yield module_name.partition(".")[0], module, name
