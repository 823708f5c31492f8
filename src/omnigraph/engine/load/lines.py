"""Lines of a chunk as columns: where they begin and end, and which type each record seems to name.

Works on bytes and Arrow kernels only. A line that is not plainly one object of a named type is left to the exact reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.constraints.order import truths

_NEWLINE, _RETURN, _OPEN, _CLOSE = b"\n\r{}"
_BEGINNING = r'^\{[ \t]*"(?:type|edge)"[ \t]*:[ \t]*"[A-Za-z0-9_]+"'
_BEGINNING_PARTS = re.compile(rb'\{[ \t]*"(type|edge)"[ \t]*:[ \t]*"([A-Za-z0-9_]+)"')
_ANYWHERE = r'[{,][ \t]*"(?P<word>type|edge)"[ \t]*:[ \t]*"(?P<name>[A-Za-z0-9_]+)"'
_BEGINNINGS_MAX = 24
_GROUPS_MAX = 1_024


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of one chunk in order: their bytes with the line ends, their numbers, the longest one's length."""

    text: pa.Array  # binary
    numbers: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.numbers)

    def where(self, mask: npt.NDArray[np.bool_]) -> Lines:
        """The lines for which the mask is true; a run of lines is not copied."""
        count = int(np.count_nonzero(mask))
        if count == len(mask):
            return self
        start = int(np.argmax(mask))
        if count and bool(mask[start : start + count].all()):
            return self.part(start, count)
        return Lines(self.text.filter(pa.array(mask)), self.numbers[mask])

    def part(self, start: int, count: int) -> Lines:
        return Lines(self.text.slice(start, count), self.numbers[start : start + count])

    def data(self) -> pa.Buffer:
        """The lines end to end, without copying."""
        offsets = np.frombuffer(self.text.buffers()[1], dtype=np.int32)
        start, end = offsets[self.text.offset], offsets[self.text.offset + len(self.text)]
        return self.text.buffers()[2].slice(int(start), int(end - start))

    def longest(self) -> int:
        return int(pc.max(pc.binary_length(self.text)).as_py() or 0)


@dataclass(frozen=True, slots=True)
class Group:
    """Lines whose records seem to name the same type: `word` is "type" or "edge", `name` what follows.

    It is a guess: whoever reads the lines must see that each record does name it.
    """

    word: str
    name: str
    lines: Lines


@dataclass(frozen=True, slots=True)
class Split:
    """The lines of a chunk that are not empty: those that look like one object a line, and the others."""

    plain: Lines
    others: Lines
    longest: int  # bytes of the longest line, without its end
    longest_number: int


def split(data: bytes, first_line: int) -> Split:
    """Cuts a chunk into lines. `plain` lines begin with `{` and end with `}`; empty lines are left out."""
    buffer = np.frombuffer(data, dtype=np.uint8)
    stops = np.flatnonzero(buffer == _NEWLINE)
    starts = np.concatenate([[0], stops[:-1] + 1])
    returns = (stops > starts) & (buffer[stops - 1] == _RETURN)
    ends = stops - returns
    lengths = ends - starts
    filled = lengths > 0
    plain = filled & (buffer[starts] == _OPEN) & (buffer[ends - 1] == _CLOSE)
    offsets = np.append(starts, len(data)).astype(np.int32)
    text = pa.Array.from_buffers(pa.binary(), len(stops), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    lines = Lines(text, np.arange(first_line, first_line + len(stops), dtype=np.int64))
    longest = int(np.argmax(lengths))
    return Split(
        plain=lines.where(plain),
        others=lines.where(filled & ~plain),
        longest=int(lengths[longest]),
        longest_number=first_line + longest,
    )


def groups(lines: Lines) -> Iterator[Group | Lines]:
    """The lines by the type that their records seem to name; lines that seem to name none come as `Lines`.

    Nearly always the type comes first in its record. Then lines with an equal beginning are told by one comparison.
    """
    rest = lines
    regular = False
    for _ in range(_BEGINNINGS_MAX):
        if not len(rest):
            return
        beginning = _BEGINNING_PARTS.match(rest.text[0].as_buffer())
        if beginning is None:
            if not regular:
                mask = truths(pc.match_substring_regex(rest.text, pattern=_BEGINNING))
                yield from _groups_by_search(rest.where(~mask))
                rest, regular = rest.where(mask), True
            continue
        mask = truths(pc.starts_with(rest.text, pattern=beginning[0]))
        yield Group(beginning[1].decode(), beginning[2].decode(), rest.where(mask))
        rest = rest.where(~mask)
    if len(rest):
        yield from _groups_by_search(rest)


def _groups_by_search(lines: Lines) -> Iterator[Group | Lines]:
    """The same where the type stands elsewhere in the records, or there are many types."""
    found = pc.extract_regex(lines.text, pattern=_ANYWHERE)
    named = truths(pc.is_valid(found))
    if not named.all():
        yield lines.where(~named)
    lines = lines.where(named)
    word, name = found.filter(pa.array(named)).flatten()
    encoded = pc.binary_join_element_wise(word, name, b" ").dictionary_encode()
    codes = encoded.indices.to_numpy()
    for code, label in enumerate(encoded.dictionary.to_pylist()):
        part = lines.where(codes == code)
        if code < _GROUPS_MAX:
            parts = label.decode().split(" ")
            yield Group(parts[0], parts[1], part)
        else:
            yield part
