"""Distinct numbers by sorting. Knows nothing of what they stand for.

NumPy's `unique` without its optional answers hashes, and numbers made of two, one in the high bits, meet in few buckets:
50,000 such codes took 237 ms where sorting takes 1.
"""

from __future__ import annotations

import numpy as np


def distinct(numbers: np.ndarray) -> np.ndarray:
    """Each number once, ascending.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(numbers)
    fresh = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    return ordered[fresh]
