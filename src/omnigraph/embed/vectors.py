"""Numbers become a vector: the right count, finite, not all zero, of length 1, rounded to 32 bits.

Pure. Knows no provider; whatever came from outside is judged here and nowhere else.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import cast

from omnigraph.embed.outcomes import Failed, Vector, Vectors

_NUMBERS = {int, float}  # exactly these: a bool counts as an int elsewhere


def unit_vector(values: object, dimensions: int) -> Vector | None:
    """The L2-normalised vector, or None for anything but `dimensions` finite numbers that are not all zero.

    >>> unit_vector([3, 4], 2)
    (0.6000000238418579, 0.800000011920929)
    >>> unit_vector([3, 4], 3), unit_vector([0, 0], 2), unit_vector([1, float("nan")], 2)
    (None, None, None)
    """
    if not isinstance(values, list):
        return None
    numbers = cast("list[object]", values)
    if len(numbers) != dimensions or not set(map(type, numbers)) <= _NUMBERS:
        return None
    try:
        given = array("d", cast("list[float]", numbers))
    except OverflowError:  # an integer beyond what a double holds
        return None
    largest = max(map(abs, given), default=0.0)
    if not largest or not all(map(math.isfinite, given)):
        return None
    # By a power of two, which rounds nothing, so that squares neither overflow nor vanish.
    exponent = -math.frexp(largest)[1]
    scaled = [math.ldexp(value, exponent) for value in given]
    length = math.sqrt(math.fsum(value * value for value in scaled))
    return tuple(array("f", [value / length for value in scaled]))


def judged(answers: Sequence[object], count: int, dimensions: int) -> Vectors | Failed:
    """What a provider answered for `count` texts."""
    if len(answers) != count:
        return not_vectors(count, dimensions)
    vectors: list[Vector] = []
    for answer in answers:
        vector = unit_vector(answer, dimensions)
        if vector is None:
            return not_vectors(count, dimensions)
        vectors.append(vector)
    return Vectors(tuple(vectors))


def not_vectors(count: int, dimensions: int) -> Failed:
    wanted = f"{dimensions:,} finite numbers that are not all zero"
    texts = "one vector" if count == 1 else f"{count:,} vectors, each"
    return Failed("bad_vector", f"answered with something other than {texts} of {wanted}")
