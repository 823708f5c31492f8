"""Property tests of the languages judge what is computed, never how fast this machine was at it."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
