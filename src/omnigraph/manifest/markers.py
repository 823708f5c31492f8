"""The marker of a deleted branch (history.md 1.5), which spares `branch list` a request for each name that is gone.

It is written only after a deletion is known to be published, and proves nothing about later versions, so that a failure
here costs later listings a request and nothing else.
"""

from __future__ import annotations

from omnigraph.errors import StorageClass
from omnigraph.manifest.keys import deleted_marker_key
from omnigraph.manifest.model import Manifest
from omnigraph.store.base import Store, StoreError


def mark_deleted(store: Store, published: Manifest) -> StorageClass | None:
    """Write the marker of this published deletion and remove the one of the life before.

    Returns the class of the failure, if storage failed, for the log; never raises for it.
    """
    if published.state != "deleted":
        raise ValueError("only a published deletion is marked")
    try:
        store.put_fresh(deleted_marker_key(published.branch, published.version), b"")
        if published.life > 1:  # the version before a life is the deletion that ended the one before it
            store.delete([deleted_marker_key(published.branch, published.life - 1)])
    except StoreError as error:
        return error.cls
    return None
