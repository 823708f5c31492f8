"""Values in forms whose plain order and equality are those of the language (languages.md 10.2, 11.2).

Both engines sort and group what this module makes, so they can't disagree about zeros, lists or strings. Nulls stay
nulls; where they go is the engine's business.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def comparable(values: pa.Array) -> pa.Array:
    """Values that order and compare as the language says: −0.0 becomes 0.0, a list becomes bytes."""
    of = values.type
    if pa.types.is_floating(of):
        return pc.add(values, pa.scalar(0.0, of))
    if pa.types.is_list(of) or pa.types.is_large_list(of) or pa.types.is_fixed_size_list(of):
        return _list_bytes(values)
    return values


def shown(values: pa.Array) -> pa.Array:
    """Group keys as an answer shows them: −0.0 as 0.0, inside lists too."""
    of = values.type
    if pa.types.is_floating(of):
        return comparable(values)
    if pa.types.is_list(of) and pa.types.is_floating(of.value_type):
        offsets = _offsets(values)
        return pa.ListArray.from_arrays(offsets, comparable(values.flatten()), type=of, mask=values.is_null())
    if pa.types.is_fixed_size_list(of):
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        present = pa.FixedSizeListArray.from_arrays(comparable(values.flatten()), type=of)
        return present.take(pa.array(np.cumsum(valid) - 1, mask=~valid))
    return values


def _offsets(lists: pa.Array) -> pa.Array:
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))


def ordinals(values: pa.Array) -> np.ndarray:
    """Integers or floats in the order of comparable values. Nulls get any number."""
    of = values.type
    if pa.types.is_floating(of):
        return values.fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_boolean(of):
        return values.fill_null(False).to_numpy(zero_copy_only=False).astype(np.int8)
    if pa.types.is_integer(of):
        return values.fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_date32(of):
        return values.cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_timestamp(of):
        return values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return _dense_ranks(values)


def _dense_ranks(values: pa.Array) -> np.ndarray:
    """Strings or bytes as numbers: each distinct value by its place among them."""
    coded = values.dictionary_encode()
    order = pc.sort_indices(coded.dictionary).to_numpy(zero_copy_only=False)
    rank = np.empty(max(len(order), 1), np.int64)
    rank[order] = np.arange(len(order))
    return rank[coded.indices.fill_null(0).to_numpy(zero_copy_only=False)]


def order_bits(numbers: np.ndarray) -> np.ndarray:
    """Floats as integers of their width in the same order, −0.0 directly below 0.0."""
    signed = np.int32 if numbers.dtype == np.float32 else np.int64
    bits = numbers.view(signed)
    return np.where(bits < 0, bits ^ np.iinfo(signed).max, bits)


def from_order_bits(bits: np.ndarray) -> np.ndarray:
    """The floats of `order_bits`."""
    signed = bits.dtype.type
    floats = np.float32 if bits.dtype == np.int32 else np.float64
    return np.where(bits < 0, bits ^ np.iinfo(signed).max, bits).view(floats)


def _list_bytes(lists: pa.Array) -> pa.Array:
    """Each list as bytes in the order of lists: element by element, null elements lowest, a proper prefix first.

    Every element takes nine bytes: 0 for null or 1, then its place in the order, most significant byte first.
    """
    elements = comparable(lists.flatten())
    codes = np.empty((len(elements), 9), np.uint8)
    codes[:, 0] = elements.is_valid().to_numpy(zero_copy_only=False)
    numbers = ordinals(elements)
    if numbers.dtype.kind == "f":
        numbers = order_bits(numbers)
    if numbers.dtype.kind == "u":
        raised = numbers.astype(np.uint64)
    else:
        raised = numbers.astype(np.int64).view(np.uint64) ^ np.uint64(1 << 63)
    raised = np.where(codes[:, 0] == 1, raised, np.uint64(0))
    codes[:, 1:] = raised.astype(">u8").view(np.uint8).reshape(-1, 8)
    if pa.types.is_fixed_size_list(lists.type):
        valid = lists.is_valid().to_numpy(zero_copy_only=False)
        lengths = np.where(valid, lists.type.list_size, 0)
    else:
        lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths * 9)]).astype(np.int64)
    data = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(codes))]
    plain = pa.Array.from_buffers(pa.large_binary(), len(lists), data)
    return plain if lists.null_count == 0 else pc.if_else(lists.is_valid(), plain, pa.scalar(None, pa.large_binary()))
