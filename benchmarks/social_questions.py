"""Questions to the social graph, each as the same question in two languages: .gq and Cypher.

Of several spellings in Cypher the quickest stands here. `list_contains` and `IN` did alike, `UNWIND` ran out of memory on
two steps from 1,000 people. A person is named in braces where an anti-join follows (a hundred times quicker) and by `WHERE`
elsewhere; a distance is a shortest path, but for two steps from one person.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

Begin = Literal["one", "many", "all"]


class Aim(Enum):
    """How many times faster than LadybugDB an answer is to be."""

    NOT_SLOWER = 1.0
    TEN_TIMES = 10.0
    HALF = 0.5

    def holds(self, times_faster: float) -> bool:
        return times_faster >= self.value


@dataclass(frozen=True, slots=True)
class Question:
    """`begin`: at one person, at a list of them, or at all. `ordered`: the answer is a list, else a multiset of rows."""

    name: str
    begin: Begin
    match: str
    returned: str
    cypher: str
    aim: Aim = Aim.NOT_SLOWER
    ordered: bool = False

    @property
    def gq(self) -> str:
        """The read in the query language."""
        params = {"one": "$one: String", "many": "$many: [String]", "all": ""}[self.begin]
        return f"query asked({params}) {{ match {{ {self.match} }} return {{ {self.returned} }}"


_BEGIN: dict[Begin, str] = {"one": "$a: Person { handle: $one }", "many": "$a: Person  $a.handle in $many"}
_WHERE: dict[Begin, str] = {"one": "a.handle = $one", "many": "list_contains($many, a.handle)"}
_AIM: dict[Begin, Aim] = {"one": Aim.NOT_SLOWER, "many": Aim.TEN_TIMES}
_STEP = "-[:Follows]->"


def questions() -> tuple[Question, ...]:
    """All, in the order of the report."""
    return (*_from("one"), *_from("many"), *_aggregates(), _BY_KEY)


def _from(begin: Begin) -> tuple[Question, ...]:
    return (*_walks(begin), *_distances(begin), *_chosen(begin), *_suggested(begin))


def _walks(begin: Begin) -> tuple[Question, ...]:
    """How many paths there are."""
    hops = ("$a follows $b", "$b follows $c", "$c follows $d")
    ways = (f"(a:Person){_STEP}(b:Person)", f"{_STEP}(c:Person)", f"{_STEP}(d:Person)")
    found = [
        Question(
            f"number of paths, {steps} {'step' if steps == 1 else 'steps'}",
            begin,
            f"{_BEGIN[begin]}  {'  '.join(hops[:steps])}",
            f"count(${'abcd'[steps]}) as n }}",
            f"MATCH {''.join(ways[:steps])} WHERE {_WHERE[begin]} RETURN count(*) AS n",
            _AIM[begin],
        )
        for steps in (1, 2, 3)
    ]
    if begin == "many":
        found.append(
            Question(
                "paths of 3 steps into one city, for each",
                begin,
                f'{_BEGIN[begin]}  {"  ".join(hops)}  $d.city = "city 0040"',
                "$a.handle as seed, count($d) as n }",
                f"MATCH {''.join(ways)} WHERE {_WHERE[begin]} AND d.city = 'city 0040' "
                "RETURN a.handle AS seed, count(*) AS n",
                _AIM[begin],
            )
        )
    return tuple(found)


def _distances(begin: Begin) -> tuple[Question, ...]:
    """The people at exactly so many steps, as rows; how many there are within three."""
    seed_gq, seed = ("", "") if begin == "one" else ("$a.handle as seed, ", "a.handle AS seed, ")
    columns_gq = f"{seed_gq}$b.handle as handle, $b.name as name, $b.age as age }}"
    columns = f"{seed}b.handle AS handle, b.name AS name, b.age AS age"
    aim = _AIM[begin]

    def shortest(upto: int) -> str:
        return f"MATCH p = (a:Person)-[:Follows* SHORTEST 1..{upto}]->(b:Person) WHERE {_WHERE[begin]}"

    cypher = {
        1: f"MATCH (a:Person){_STEP}(b:Person) WHERE {_WHERE[begin]} RETURN {columns}",
        2: f"{shortest(2)} AND length(p) = 2 RETURN {columns}",
        3: f"{shortest(3)} AND length(p) = 3 RETURN {columns}",
    }
    if begin == "one":
        cypher[2] = (
            f"MATCH (a:Person {{handle: $one}}){_STEP}(m:Person){_STEP}(b:Person) WHERE a.handle <> b.handle "
            f"AND NOT EXISTS {{ MATCH (a){_STEP}(b) }} RETURN DISTINCT {columns}"
        )
    else:
        del cypher[3]  # millions of rows
    exact = [
        Question(
            f"people at {steps} {'step' if steps == 1 else 'steps'}, three properties",
            begin,
            f"{_BEGIN[begin]}  $a follows{{{steps},{steps}}} $b",
            columns_gq,
            text,
            aim,
        )
        for steps, text in cypher.items()
    ]
    within = Question(
        "number of people within 3 steps",
        begin,
        f"{_BEGIN[begin]}  $a follows{{1,3}} $b",
        "count($b) as n }",
        f"{shortest(3)} RETURN count(*) AS n",
        aim,
    )
    return (*exact, within)


def _chosen(begin: Begin) -> tuple[Question, ...]:
    """Filters on who is followed, and who follows back."""
    filtered = Question(
        "followed, active, aged 30 or more: the name",
        begin,
        f"{_BEGIN[begin]}  $a follows $b  $b.active = true  $b.age >= 30",
        "$b.name as name }",
        f"MATCH (a:Person){_STEP}(b:Person) WHERE {_WHERE[begin]} AND b.active = true AND b.age >= 30 RETURN b.name AS name",
    )
    mutual = Question(
        "who follows back",
        begin,
        f"{_BEGIN[begin]}  $a follows $b  $b follows $a",
        "$a.handle as a, $b.handle as b }",
        f"MATCH (a:Person){_STEP}(b:Person){_STEP}(a) WHERE {_WHERE[begin]} RETURN a.handle AS a, b.handle AS b",
    )
    return (filtered,) if begin == "one" else (filtered, mutual)


def _suggested(begin: Begin) -> tuple[Question, ...]:
    """Friends of friends who are not friends, those with the most friends in common first."""
    seed_gq, seed = ("", "") if begin == "one" else ("$a.handle as seed, ", "a.handle AS seed, ")
    by = "handle" if begin == "one" else "seed, handle"
    named, where = ("a:Person {handle: $one}", "") if begin == "one" else ("a:Person", f"{_WHERE[begin]} AND ")
    return (
        Question(
            "followed at second hand and not at first, the top 20",
            begin,
            f"{_BEGIN[begin]}  $a follows $b  $b follows $c  $a.handle != $c.handle  not {{ $a follows $c }}",
            f"{seed_gq}$c.handle as handle, count($b) as n }} order {{ n desc, {by} }} limit 20",
            f"MATCH ({named}){_STEP}(b:Person){_STEP}(c:Person) WHERE {where}a.handle <> c.handle "
            f"AND NOT EXISTS {{ MATCH (a){_STEP}(c) }} "
            f"RETURN {seed}c.handle AS handle, count(*) AS n ORDER BY n DESC, {by} LIMIT 20",
            _AIM[begin],
            ordered=True,
        ),
    )


def _aggregates() -> tuple[Question, ...]:
    """Over everybody."""
    follows = f"MATCH (a:Person){_STEP}(b:Person)"
    return (
        Question(
            "the 20 most followed",
            "all",
            "$a: Person  $a follows $b",
            "$b.handle as handle, count($a) as n } order { n desc, handle } limit 20",
            f"{follows} RETURN b.handle AS handle, count(*) AS n ORDER BY n DESC, handle LIMIT 20",
            ordered=True,
        ),
        Question(
            "by city: people, mean score",
            "all",
            "$p: Person",
            "$p.city as city, count($p) as n, avg($p.score) as score }",
            "MATCH (p:Person) RETURN p.city AS city, count(*) AS n, avg(p.score) AS score",
        ),
        Question(
            "by city: mean age of the followed",
            "all",
            "$a: Person  $a follows $b",
            "$a.city as city, count($b) as n, avg($b.age) as age }",
            f"{follows} RETURN a.city AS city, count(*) AS n, avg(b.age) AS age",
        ),
        Question(
            "by city: followed in the same city",
            "all",
            "$a: Person  $a follows $b  $a.city = $b.city",
            "$a.city as city, count($b) as n }",
            f"{follows} WHERE a.city = b.city RETURN a.city AS city, count(*) AS n",
        ),
        Question(
            "by country of the city and activity: people, oldest",
            "all",
            "$p: Person  $p livesIn $c",
            "$c.country as country, $p.active as active, count($p) as n, max($p.age) as oldest }",
            "MATCH (p:Person)-[:LivesIn]->(c:City) "
            "RETURN c.country AS country, p.active AS active, count(*) AS n, max(p.age) AS oldest",
        ),
        Question(
            "by city: who follows nobody",
            "all",
            "$p: Person  not { $p follows $_ }",
            "$p.city as city, count($p) as n }",
            f"MATCH (p:Person) WHERE NOT EXISTS {{ MATCH (p){_STEP}(:Person) }} RETURN p.city AS city, count(*) AS n",
        ),
    )


_BY_KEY = Question(
    "one person by key, three properties",
    "one",
    _BEGIN["one"],
    "$a.name as name, $a.age as age, $a.city as city }",
    "MATCH (a:Person {handle: $one}) RETURN a.name AS name, a.age AS age, a.city AS city",
    Aim.HALF,
)
