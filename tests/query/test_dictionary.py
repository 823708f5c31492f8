"""The key dictionary numbers keys once and for ever, in whatever portions they come."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.query.residency import dictionary as dictionary_module
from omnigraph.query.residency.dictionary import KeyDictionary

KEYS = st.text(max_size=3) | st.sampled_from(["", "a", "ab", "é", "\uffff", "\U0001f600", "a\0"])


@settings(max_examples=150, deadline=None)
@given(portions=st.lists(st.lists(KEYS, max_size=12), max_size=12), tail=st.sampled_from([0, 3, 512]))
def test_numbers_are_dense_permanent_and_lead_back_to_their_keys(portions: list[list[str]], tail: int) -> None:
    least, dictionary_module._TAIL_LEAST = dictionary_module._TAIL_LEAST, tail
    try:
        dictionary = KeyDictionary()
        known: dict[str, int] = {}
        for portion in portions:
            numbers = dictionary.add(pa.array(portion, pa.string())).tolist()
            for key, number in zip(portion, numbers, strict=True):
                assert known.setdefault(key, number) == number
            assert sorted(known.values()) == list(range(len(dictionary)))
            keys = list(known)
            assert dictionary.find(pa.array(keys, pa.string())).tolist() == [known[key] for key in keys]
            assert dictionary.keys(np.array([known[k] for k in keys], np.int32)).to_pylist() == keys
            in_order = sorted(keys, key=str.encode)
            ranks = dictionary.ranks()
            assert [ranks[known[key]] for key in in_order] == list(range(len(in_order)))
        absent = [key for key in ("nowhere", "\0", "zz") if key not in known]
        assert dictionary.find(pa.array(absent, pa.string())).tolist() == [-1] * len(absent)
    finally:
        dictionary_module._TAIL_LEAST = least


def test_threads_that_add_the_same_keys_get_the_same_numbers() -> None:
    dictionary = KeyDictionary()
    keys = [f"k{i % 700}" for i in range(2_000)]
    with ThreadPoolExecutor(8) as pool:
        portions = [pool.submit(dictionary.add, pa.array(keys[i::8])) for i in range(8)]
        found = [portion.result().tolist() for portion in portions]
    assert len(dictionary) == 700
    for i, numbers in enumerate(found):
        assert numbers == dictionary.find(pa.array(keys[i::8])).tolist()
