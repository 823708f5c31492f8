"""Floats as text, whole columns at a time: the spelling of results (languages.md 20.2) and that of ids (4.6).

Both start from Arrow's cast, which gives the fewest digits that read back at the column's width and changes to an
exponent at 1e10 and below 1e-6; what differs is the layout. Knows nothing of JSON.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def decimal_text(column: pa.Array) -> pa.Array:
    """Floats as results spell them: `1.0`, `0.00001`, `1.25e20`, `-0.0`. Null for null, infinities and NaN.

    >>> decimal_text(pa.array([1.0, 1e10, None])).to_pylist()
    ['1.0', '1.0e10', None]
    """
    finite = pc.is_finite(column)
    if not pc.all(finite, min_count=0).as_py():
        column = pc.if_else(finite, column, pa.scalar(None, column.type))
    text = pc.cast(column, pa.string())
    with_exponent = pc.fill_null(pc.match_substring(text, "e"), False)
    if pc.any(with_exponent, min_count=0).as_py():
        spelled = pc.replace_substring(text.filter(with_exponent), "e+", "e")
        spelled = pc.replace_substring_regex(spelled, pattern=r"^(-?[0-9])e", replacement=r"\1.0e")
        text = pc.replace_with_mask(text, with_exponent, spelled)
    whole = pc.equal(pc.find_substring(text, "."), -1)
    if pc.any(whole, min_count=0).as_py():
        text = pc.if_else(whole, pc.binary_join_element_wise(text, ".0", ""), text)
    return text


def positional_text(column: pa.Array) -> pa.Array:
    """Floats as ids spell them: no exponent, no trailing `.0`, both zeros `0`. The column holds finite values or nulls.

    >>> positional_text(pa.array([1e21, 0.5, -0.0])).to_pylist()
    ['1000000000000000000000', '0.5', '0']
    """
    text = pc.cast(column, pa.string())
    text = pc.if_else(pc.equal(text, "-0"), "0", text)
    with_exponent = pc.fill_null(pc.match_substring(text, "e"), False)
    if not pc.any(with_exponent, min_count=0).as_py():
        return text
    return pc.replace_with_mask(text, with_exponent, _without_exponent(text.filter(with_exponent)))


def _without_exponent(text: pa.Array) -> pa.Array:
    """`-1.5e+21` written out. One pass for each exponent that occurs, of which F64 has about 650."""
    parts = pc.extract_regex(
        text, pattern=r"^(?P<sign>-?)(?P<whole>[0-9])\.?(?P<rest>[0-9]*)e(?P<exponent>[+-]?[0-9]+)$"
    )
    sign, whole, rest, exponent_text = parts.flatten()
    digits = pc.binary_join_element_wise(whole, rest, "")
    exponents = pc.cast(pc.replace_substring(exponent_text, "+", ""), pa.int32()).to_numpy()
    groups: list[pa.Array] = []
    places: list[np.ndarray] = []
    for exponent in np.unique(exponents).tolist():
        rows = np.flatnonzero(exponents == exponent)
        groups.append(_shifted(digits.take(pa.array(rows)), exponent))
        places.append(rows)
    back = np.argsort(np.concatenate(places), kind="stable")
    magnitudes = pa.concat_arrays(groups).take(pa.array(back))
    return pc.binary_join_element_wise(sign, magnitudes, "")


def _shifted(digits: pa.Array, exponent: int) -> pa.Array:
    """The decimal `d.ddd` times ten to the exponent, from its digits without the point."""
    if exponent < 0:
        return pc.binary_join_element_wise("0." + "0" * (-exponent - 1), digits, "")
    before = pc.utf8_rpad(pc.utf8_slice_codeunits(digits, 0, exponent + 1), exponent + 1, padding="0")
    after = pc.utf8_slice_codeunits(digits, exponent + 1)
    point = pc.if_else(pc.equal(pc.binary_length(after), 0), "", ".")
    return pc.binary_join_element_wise(before, point, after, "")
