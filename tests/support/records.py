"""A schema with every type of value, and load records for it: plain ones, odd ones, broken ones."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import compile_schema
from support.schemas import HARBOUR, counter

WIDE = """
node Thing {
  key: String @key
  text: String?
  yes: Bool?
  small: I32?
  large: I64?
  natural: U32?
  huge: U64?
  single: F32?
  double: F64?
  day: Date?
  moment: DateTime?
  state: enum(open, laid-up)?
  place: Vector(2)?
  texts: [String]?
  counts: [I64]?
  singles: [F32]?
  days: [Date]?
  moments: [DateTime]?
  answers: [Bool]?
  file: Blob?
}
node Memo { id: String?  data: String?  type: I32? }
edge Link: Thing -> Memo { weight: F64? }
edge Bare: Thing -> Thing
edge Pair: Thing -> Thing { rank: I32  day: Date  @key(@src, @dst, rank, day) }
"""


def wide() -> Catalog:
    return compile_schema(WIDE, mint=counter())


def harbour() -> Catalog:
    return compile_schema(HARBOUR, mint=counter())


def lines(*records: dict[str, Any] | str) -> bytes:
    """Records, or texts as they are, one a line."""
    return "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records).encode()


# --- values as JSON text

TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.sampled_from(
        ["", "NA", "null", 'say "hi"', "back\\slash", "a\nb", "\x00", "\x1f", "\x7f", "é", "𝄞", "}null", '"id":null']
    ),
)
_INTEGERS = [
    0,
    1,
    -1,
    7,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32 - 1,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63),
    2**64 - 1,
    2**64,
]
_FLOATS = [
    "0.0",
    "-0.0",
    "-0",
    "1.5",
    "1e3",
    "1E+2",
    "5e-324",
    "1e-400",
    "0.1",
    "16777217",
    "3.4028235677973366e38",
    "1e38",
    "123456789012345678901234567890",
]
_DAYS = ["2024-02-29", "0001-01-01", "9999-12-31", "1969-12-31"]
_MOMENTS = [
    "2024-01-01T00:00:00",
    "2024-01-01",
    "2024-01-01 23:59",
    "2024-01-01T10:11:12.25Z",
    "2024-03-01T00:30:00+02:00",
    "2024-01-01T10:11:12.1230000-05:30",
    "0001-01-01T00:00:00.000",
]
_ODD = [
    "null", "true", "false", "NaN", "-NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1.0", "01", "1.", ".5", "+1", "-", "1e", "5.0", "20000.5",
    "{}", "[]", "[[]]", "[null]", "[1,null]", "[1,2,3]", '{"a":1}', '""', '"soon"', '"5"', '"-5"', '"+5"', '" 5"', '"007"', '"0x10"', '"1.0"',
    '"2023-02-29"', '"2024-1-1"', '"20240101"', '"2024-01-01T00:00:00"', '"2024-01-01T24:00"', '"2024-01-01T10"', '"2024-01-01T10:11:60"', '"2024-01-01t10:11"',
    '"2024-01-01T10:11:12.1234"', '"2024-01-01T10:11+24:00"', '"2024-01-01Z"', '"2024-01-01T10:11:12."', '"0001-01-01T00:00+01:00"', '"9999-12-31T23:59:59.999-00:01"', '"0000-01-01"',
    '"\\ud800"', '"\\udc00x"', '"\\ud83d\\ude00"', '"\\u0041"', '"\\x"', '"tab\there"', "19723", "-719162", "-719163", "2932897", "253402300800000", "9" * 5000, "nul", "'x'",
]  # fmt: skip


def _texts_of(values: list[Any]) -> st.SearchStrategy[str]:
    return st.sampled_from([json.dumps(v) for v in values])


def _list_of(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(st.one_of(items, st.just("null")), max_size=3).map(lambda found: f"[{','.join(found)}]")


_STRINGS = TEXTS.flatmap(lambda t: st.sampled_from([json.dumps(t), json.dumps(t, ensure_ascii=False)]))
_NUMBERS = st.one_of(
    st.sampled_from(_FLOATS), st.floats(allow_nan=False, allow_infinity=False).map(repr), st.integers().map(str)
)
VALUES: dict[str, st.SearchStrategy[str]] = {
    "key": st.integers(0, 10**6).map(lambda n: json.dumps(f"k{n}")),
    "text": _STRINGS,
    "yes": st.sampled_from(["true", "false"]),
    "small": st.integers(-(2**31), 2**31 - 1).map(str),
    "large": st.one_of(st.integers(-(2**63), 2**63 - 1).map(str), st.integers(-9, 9).map(lambda n: f'"{n}"')),
    "natural": st.integers(0, 2**32 - 1).map(str),
    "huge": st.integers(0, 2**64 - 1).map(str),
    "single": st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    "double": _NUMBERS,
    "day": st.one_of(_texts_of(_DAYS), st.integers(-700_000, 2_900_000).map(str)),
    "moment": st.one_of(_texts_of(_MOMENTS), st.integers(-(10**12), 10**12).map(str)),
    "state": _texts_of(["open", "laid-up", "sunk"]),
    "place": st.lists(st.sampled_from(["1", "0.5", "-0.0", "1e10"]), min_size=2, max_size=2).map(lambda v: f"[{','.join(v)}]"),
    "texts": _list_of(_STRINGS),
    "counts": _list_of(st.integers(-(2**63), 2**63 - 1).map(str)),
    "singles": _list_of(st.sampled_from(["1", "0.1", "1e-50"])),
    "days": _list_of(_texts_of(_DAYS)),
    "moments": _list_of(_texts_of(_MOMENTS)),
    "answers": _list_of(st.sampled_from(["true", "false"])),
    "file": st.sampled_from(["null", '"base64:AAAA"', '"https://example.org/x"']),
}  # fmt: skip
ODD_TEXTS = [*_ODD, *_FLOATS, *map(str, _INTEGERS), *map(json.dumps, [*_DAYS, *_MOMENTS])]
ODD_VALUES = st.sampled_from(ODD_TEXTS)


@st.composite
def plain_things(draw: st.DrawFn) -> str:
    """A `Thing` record in the usual form; whether its values break a constraint is another matter."""
    names = ["key", *draw(st.lists(st.sampled_from([n for n in VALUES if n not in ("key", "file")]), unique=True))]
    data = ",".join(f'"{name}":{draw(VALUES[name])}' for name in names)
    return f'{{"type":"Thing","data":{{{data}}}}}'


@st.composite
def odd_records(draw: st.DrawFn) -> str:
    """A record that may be right or wrong in any way, its text perhaps damaged."""
    word = draw(st.sampled_from(["type", "type", "type", "edge"]))
    name = draw(
        st.sampled_from(["Thing", "Thing", "Memo", "Nothing"] if word == "type" else ["Link", "link", "Bare", "Pair"])
    )
    data = draw(_odd_data(name))
    members = [("data", data)] if draw(st.integers(0, 9)) else []
    if word == "edge" or not draw(st.integers(0, 19)):
        members = [("from", draw(_ids())), ("to", draw(_ids())), *members]
    if not draw(st.integers(0, 3)):
        members.append(("id", draw(_ids())))
    if not draw(st.integers(0, 19)):
        members.append(
            draw(st.sampled_from([("extra", "1"), ("type", '"Memo"'), ("data", "{}"), ("i\\u0064", "null")]))
        )
    if draw(st.booleans()):
        members = draw(st.permutations(members))
    comma, colon = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", "\r: ")]))
    text = "{" + comma.join(f'"{key}"{colon}{value}' for key, value in [(word, f'"{name}"'), *members]) + "}"
    return draw(_damaged(text)) if not draw(st.integers(0, 3)) else text


def _ids() -> st.SearchStrategy[str]:
    return st.one_of(
        st.sampled_from(['"a"', '"b"', '"k1"']), st.sampled_from(['""', "null", "1", '"\\ud800"', '"x y"'])
    )


@st.composite
def _odd_data(draw: st.DrawFn, name: str) -> str:
    if not draw(st.integers(0, 14)):
        return draw(ODD_VALUES)
    known = {"Thing": list(VALUES), "Memo": ["id", "data", "type"], "Link": ["weight"], "Pair": ["rank", "day"]}.get(
        name, ["x"]
    )
    members: list[str] = []
    for key in draw(st.lists(st.sampled_from(known), max_size=4, unique=bool(draw(st.integers(0, 9))))):
        usual = VALUES.get(key, st.sampled_from(['"x"', "3", "null"]))
        members.append(f'"{key}":{draw(ODD_VALUES if not draw(st.integers(0, 4)) else usual)}')
    if not draw(st.integers(0, 19)):
        members.append(draw(st.sampled_from(['"unknown":1', '"k\\u0065y":"z"', '"":null'])))
    return "{" + ",".join(members) + "}"


@st.composite
def _damaged(draw: st.DrawFn, text: str) -> str:
    for _ in range(draw(st.integers(1, 2))):
        place = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 2))
        put = draw(
            st.sampled_from(
                ["", "{", "}", "[", "]", '"', ",", ":", "\\", "null", " ", "\r", "{}", "}null{", "x", "}{", "0"]
            )
        )
        text = text[:place] + put + text[place + cut :]
    return text.replace("\n", " ")
