"""Arrays of whole numbers: each once, and ranges written out. Knows nothing of what they stand for."""

from __future__ import annotations

import numpy as np


def distinct(numbers: np.ndarray) -> np.ndarray:
    """Each number once, ascending: by sorting. NumPy's `unique` without its optional answers hashes, and numbers made of two,
    one in the high bits, meet in few buckets: 50,000 such codes took 237 ms where sorting takes 1.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(numbers)
    fresh = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    return ordered[fresh]


def ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The numbers of all these ranges, one range after another.

    >>> ranges(np.array([7, 0, 3]), np.array([2, 0, 3])).tolist()
    [7, 8, 3, 4, 5]
    """
    begins = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) + np.repeat(starts - begins, counts)
