"""Values of the command line: durations, pairs, parameters by declared type."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.cli.errors import UsageRefused
from omnigraph.cli.output import chosen_output
from omnigraph.cli.values import duration_seconds, json_object, pairs, typed_params


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("15m", 900), ("24h", 86_400), ("7d", 604_800), ("4w", 2_419_200)]
)
def test_durations(text: str, seconds: int) -> None:
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "m", "1.5h", "-1s", "1 h", "5y"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        duration_seconds(text)


@pytest.mark.parametrize(
    ("declared", "text", "value"),
    [
        ("String", "1", "1"),
        ("String", "", ""),
        ("String?", "null", "null"),
        ("Date", "2026-11-30", "2026-11-30"),
        ("DateTime?", "null", None),
        ("I32", "7", 7),
        ("U64", "18446744073709551615", 18_446_744_073_709_551_615),
        ("I64", "-7", -7),
        ("I64", "seven", "seven"),
        ("F64", "1e3", 1000.0),
        ("F64", "nan", "nan"),
        ("Bool", "true", True),
        ("Bool", "yes", "yes"),
        ("[I32]", "[1, 2]", [1, 2]),
        ("[String]", '["a"]', ["a"]),
        ("[I32]", "1,2", "1,2"),
        ("Vector(2)", "[1.0, 2.0]", [1.0, 2.0]),
        ("I32?", "null", None),
    ],
)
def test_a_parameter_is_read_by_its_declared_type(declared: str, text: str, value: Any) -> None:
    source = f"query q($x: {declared}) {{ match {{ $v: Vessel }} return {{ $v }} }}"
    found = typed_params(source, None, {"x": text})
    assert found == {"x": value}
    assert type(found["x"]) is type(value)


def test_what_a_source_does_not_declare_stays_text() -> None:
    assert typed_params("query q() { match { $v: Vessel } return { $v } }", None, {"x": "1"}) == {"x": "1"}
    assert typed_params("nonsense", None, {"x": "1"}) == {"x": "1"}


def test_pairs_split_at_the_first_sign() -> None:
    assert pairs(["a=b=c", "d="], "-p") == {"a": "b=c", "d": ""}


@pytest.mark.parametrize("text", ["[1]", "{", '{"a": 1, "a": 2}', '{"a": NaN}', "{} {}", "[" * 100_000])
def test_parameters_are_one_strict_object(text: str) -> None:
    with pytest.raises(UsageRefused):
        json_object(text, "--params")


def test_json_beats_the_standing_form_and_excludes_another() -> None:
    assert chosen_output(None, json=True, standing="csv", out=None) == "json"
    assert chosen_output("kv", json=False, standing="csv", out=None) == "kv"
    assert chosen_output(None, json=False, standing="csv", out=None) == "csv"
    assert chosen_output(None, json=False, standing=None, out="file") == "jsonl"
    with pytest.raises(UsageRefused):
        chosen_output("csv", json=True, standing=None, out=None)
