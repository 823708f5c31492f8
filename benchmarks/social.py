"""A made-up social graph: people, the cities they live in, and who follows whom, skewed on both sides.

The same sizes give the same columns everywhere. Columns and no rows: four million edges take a few seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SCHEMA = """
node City {
  name: String @key
  country: String
  people: I32
}
node Person {
  handle: String @key
  name: String
  city: String
  age: I32
  active: Bool
  score: F64
}
edge Follows: Person -> Person
edge LivesIn: Person -> City
"""

LADYBUG_SCHEMA = (
    "CREATE NODE TABLE City(name STRING PRIMARY KEY, country STRING, people INT32)",
    "CREATE NODE TABLE Person(handle STRING PRIMARY KEY, name STRING, city STRING, age INT32, active BOOL, score DOUBLE)",
    "CREATE REL TABLE Follows(FROM Person TO Person)",
    "CREATE REL TABLE LivesIn(FROM Person TO City)",
)

_SEED = 20_26
_COUNTRIES = 20
_GIVEN = (
    "Ada",
    "Bo",
    "Cem",
    "Dina",
    "Eva",
    "Finn",
    "Gia",
    "Hal",
    "Ida",
    "Jon",
    "Kim",
    "Lea",
    "Max",
    "Nia",
    "Ole",
    "Pia",
)
_FAMILY = ("Berg", "Costa", "Dahl", "Eriks", "Fuchs", "Gran", "Holm", "Ivers", "Jansen", "Klein", "Lund", "Moss")
_SILENT_SHARE = 0.05  # of people who follow nobody
_SPREAD = 1.0  # of the logarithm of how many somebody follows
_FAME_DECAY = 0.55  # the person of rank r is followed in proportion to r to the power of minus this


@dataclass(frozen=True, slots=True)
class SocialSize:
    """How much there is. `edges`: of who follows whom, distinct and without loops."""

    people: int
    edges: int
    cities: int
    seeds: int  # people that questions begin with


FULL = SocialSize(200_000, 4_000_000, 500, 1_000)
SMALL = SocialSize(5_000, 60_000, 50, 100)


@dataclass(frozen=True, slots=True)
class SocialGraph:
    """`people` and `cities` with the properties of the schema; `follows` and `lives_in` with columns src and dst, keys."""

    size: SocialSize
    people: pa.Table
    cities: pa.Table
    follows: pa.Table
    lives_in: pa.Table
    seeds: pa.Array  # distinct handles, ascending
    one: str  # a handle with a middling number of people followed


def social_graph(size: SocialSize) -> SocialGraph:
    """The graph of these sizes."""
    random = np.random.default_rng(_SEED)
    handles = _numbered("p", size.people, 7)
    names = _numbered("city ", size.cities, 4)
    lives = np.minimum(random.exponential(size.cities / 6, size.people).astype(np.int64), size.cities - 1)
    cities = pa.table(
        {
            "name": names,
            "country": _numbered("country ", _COUNTRIES, 2).take(pa.array(random.integers(0, _COUNTRIES, size.cities))),
            "people": pa.array(np.bincount(lives, minlength=size.cities).astype(np.int32)),
        }
    )
    people = pa.table(
        {
            "handle": handles,
            "name": _full_names(random, size.people),
            "city": names.take(pa.array(lives)),
            "age": pa.array(np.clip(random.normal(38, 14, size.people), 13, 99).astype(np.int32)),
            "active": pa.array(random.random(size.people) < 0.7),
            "score": pa.array(np.round(random.gamma(2.0, 10.0, size.people), 3)),
        }
    )
    src, dst = _followed(random, size)
    follows = pa.table({"src": handles.take(pa.array(src)), "dst": handles.take(pa.array(dst))})
    lives_in = pa.table({"src": handles, "dst": people.column("city")})
    degree = np.bincount(src, minlength=size.people)
    drawn = np.sort(random.choice(np.flatnonzero(degree), size.seeds, replace=False))
    mean = size.edges / size.people
    one = drawn[np.argmin(np.abs(degree[drawn] - mean))]
    return SocialGraph(
        size, people, cities, follows, lives_in, handles.take(pa.array(drawn)), handles[int(one)].as_py()
    )


def _numbered(word: str, count: int, digits: int) -> pa.Array:
    numbers = pc.utf8_lpad(pa.array(np.arange(count)).cast(pa.string()), digits, "0")
    return pc.binary_join_element_wise(word, numbers, "")


def _full_names(random: np.random.Generator, count: int) -> pa.Array:
    given, family = (
        pa.array(names).take(pa.array(random.integers(0, len(names), count))) for names in (_GIVEN, _FAMILY)
    )
    return pc.binary_join_element_wise(given, family, " ")


def _followed(random: np.random.Generator, size: SocialSize) -> tuple[np.ndarray, np.ndarray]:
    """Distinct pairs in random order. Eager and famous people are drawn independently of each other."""
    eager = random.lognormal(0.0, _SPREAD, size.people)
    eager[random.random(size.people) < _SILENT_SHARE] = 0.0
    fame = random.permutation(np.arange(1, size.people + 1, dtype=np.float64) ** -_FAME_DECAY)
    pairs = np.empty(0, np.int64)
    while len(pairs) < size.edges:
        more = size.edges // 4 + (size.edges - len(pairs)) * 5 // 4
        src, dst = _drawn(random, eager, more), random.permutation(_drawn(random, fame, more))
        apart = src != dst
        pairs = np.sort(np.concatenate([pairs, (src[apart] << 32) | dst[apart]]))
        pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])]
    pairs = random.permutation(pairs)[: size.edges]
    return pairs >> 32, pairs & 0xFFFFFFFF


def _drawn(random: np.random.Generator, weights: np.ndarray, count: int) -> np.ndarray:
    """So many places, ascending, each about as often as its weight says."""
    return np.repeat(np.arange(len(weights)), random.multinomial(count, weights / weights.sum()))
