"""From an address to a store. The S3 client is imported only when an S3 address is opened."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import assert_never

from omnigraph.store.base import Store
from omnigraph.store.local import LocalStore
from omnigraph.store.settings import StoreSettings
from omnigraph.store.uri import LocalRoot, S3Root, parse_root


def open_store(
    root: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Store:
    """The store at an address. Sends no request and creates nothing.

    `storage_options` are S3 settings that come before those of the environment (`environ`, by default the process's).
    Raises InvalidRequest: `invalid_storage_root`, `invalid_setting`, `invalid_retry_setting`.
    """
    address = parse_root(root)
    variables = dict(os.environ if environ is None else environ)
    settings = StoreSettings.from_environment(variables)
    match address:
        case LocalRoot():
            return LocalStore(address, settings)
        case S3Root():
            from omnigraph.store.cloud import CloudStore

            return CloudStore.from_environment(address, settings, variables, storage_options or {})
        case _:
            assert_never(address)
