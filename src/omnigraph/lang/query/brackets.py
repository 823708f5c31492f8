"""How tightly the parts of an expression hold together, and when one needs brackets (languages.md 9.2)."""

from __future__ import annotations

OR, AND, NOT, TEST, ATOM = range(1, 6)
"""Loosest first. An operand looser than its place asks for is put in brackets."""


def within(part: tuple[str, int], wanted: int) -> str:
    """The text of an operand with how tightly it holds, for a place that wants it so tight."""
    text, holds = part
    return text if holds >= wanted else f"({text})"
