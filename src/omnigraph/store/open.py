"""From an address to a store. The S3 client is imported only when an S3 address is opened."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import assert_never

from omnigraph.errors import InvalidRequest
from omnigraph.store.base import Store
from omnigraph.store.local import LocalStore
from omnigraph.store.settings import StoreSettings
from omnigraph.store.uri import LocalRoot, S3Root, parse_root


def open_store(
    root: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
) -> Store:
    """The store at an address. Sends no request and creates nothing.

    `storage_options` are S3 settings (`region`, `endpoint`, …) that come before the AWS_* variables.
    Raises InvalidRequest: `invalid_storage_root`, `invalid_setting`, `invalid_retry_setting`.
    """
    address = parse_root(root)
    _check_options(storage_options)
    settings = StoreSettings.from_environment()
    match address:
        case LocalRoot():
            return LocalStore(address, settings)
        case S3Root():
            from omnigraph.store.cloud import CloudStore

            return CloudStore.from_environment(address, settings, storage_options)
        case _:
            assert_never(address)


def _check_options(given: object) -> None:
    if given is not None and not isinstance(given, Mapping):
        raise InvalidRequest("storage options are a mapping of names to values", code="invalid_setting")
