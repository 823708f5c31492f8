"""Where a fault of this program happened, for the log: frames and types, never locals and never a message.

Messages of lower libraries name storage addresses and sometimes data.
"""

from __future__ import annotations

import traceback
from pathlib import PurePath
from typing import Any

_FRAMES_MAX = 40


def frames_of(error: BaseException) -> dict[str, Any]:
    """Fields for a log line: the type of the error, those it was raised from, and the frames of the innermost one."""
    chain: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in chain:
        chain.append(each)
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    innermost = traceback.extract_tb(chain[-1].__traceback__)[-_FRAMES_MAX:]
    return {
        "error_type": type(error).__name__,
        "caused_by": [type(cause).__name__ for cause in chain[1:]],
        "frames": [f"{_module(frame.filename)}:{frame.lineno} {frame.name}" for frame in innermost],
    }


def _module(filename: str) -> str:
    """The end of a path: from the package on, or the last two parts."""
    parts = PurePath(filename).parts
    start = parts.index("omnigraph") if "omnigraph" in parts else max(len(parts) - 2, 0)
    return "/".join(parts[start:])
