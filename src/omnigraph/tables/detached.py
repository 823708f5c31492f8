"""One detached commit: an operation applied to an open table version, and the next version open afterwards.

Writes exactly two objects, the transaction and the version, and reads none. Looks for no conflict and can't: who calls
this has compared pins. The names of the files follow from numbers that we know, so nothing is ever listed.
"""

from __future__ import annotations

import os
from typing import Final

import lance
from lance.dataset import Transaction

from omnigraph.ambient import random_hex
from omnigraph.manifest.model import TablePin
from omnigraph.tables.store import TableStore
from omnigraph.tables.version import TableVersion
from omnigraph.tables.whole import check_version

BASE_PROPERTY: Final = "omnigraph.base"


def detached(
    tables: TableStore,
    base: TableVersion,
    operation: lance.LanceOperation.BaseOperation,
    *,
    label: str,
    rows: int | None = None,
    size: int | None = None,
) -> tuple[TableVersion, tuple[str, str]]:
    """The version after `operation`, kept open, and the two files written, relative to the table's folder.

    `label` is `<branch>@<version it is to follow>`. `rows` and `size` of the new version are taken as given where the
    caller knows them. Raises what the library raises, and StorageFailure (phase stage) if a file did not arrive whole.
    """
    before = base.pin.version
    transaction = Transaction(
        read_version=before,
        operation=operation,
        uuid=_transaction_id(),
        transaction_properties={BASE_PROPERTY: label},
    )
    dataset = lance.LanceDataset.commit(base.dataset, transaction, detached=True)
    pin = TablePin(base.pin.path, dataset.version)
    files = (f"_transactions/{before}-{transaction.uuid}.txn", f"_versions/d{pin.version}.manifest")
    if tables.location.local_path is not None:
        check_version(os.path.join(tables.location.local_path, pin.path), *files)
    same_columns = not isinstance(operation, lance.LanceOperation.Merge)
    stored = base.stored if same_columns else None
    version = TableVersion(pin, dataset, rows=rows, size=size, stored=stored, trust=base.trust)
    return tables.keep(version, line=label.rpartition("@")[0]), files


def _transaction_id() -> str:
    """A random UUID (version 4), which the library puts in the transaction file's name."""
    digits = random_hex(32)
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
