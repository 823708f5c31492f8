"""What the environment says of this process, read when a graph is opened and before anything is asked of storage.

Every value is judged here, so that a bad one is refused by name and never met in the middle of a write. Loads no engine:
a server asks before it owns anything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.embed.config import ProviderConfig, provider_from_environment
from omnigraph.engine.limits import LoadLimits
from omnigraph.engine.settings import RequestSettings
from omnigraph.store.settings import StoreSettings
from omnigraph.tables.budget import limit_from_environment


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """`requests`: what a read starts from that says nothing else. `embeddings`: the provider, if there is one."""

    store: StoreSettings
    loads: LoadLimits
    requests: RequestSettings
    cache_bytes: int
    embeddings: ProviderConfig | None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> ProcessSettings:
        """Raises InvalidRequest (`invalid_setting`, `invalid_retry_setting`) naming the variable and what it may be."""
        variables = os.environ if environ is None else environ
        return cls(
            store=StoreSettings.from_environment(variables),
            loads=LoadLimits.from_environment(variables),
            requests=RequestSettings.from_environment(variables),
            cache_bytes=limit_from_environment(variables),
            embeddings=provider_from_environment(variables),
        )
