"""What a run of the laboratory saw, counted by operation and fault, and the tables that say so."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

Key = tuple[str, str, str]  # part, operation, fault
IN_FRONT = ("single", "pair")
"""The parts whose faults are in front of the store."""
UNMET = "unmet"
"""Of those, what met no request with one of its faults: it showed nothing of them."""
IN_PROCESS = (*IN_FRONT, "publication")


@dataclass
class Found:
    """What a piece of work saw."""

    counts: Counter[Key] = field(default_factory=Counter[Key])
    failures: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])

    def add(self, other: Found) -> None:
        self.counts.update(other.counts)
        self.failures.extend(other.failures)
        self.lines.extend(other.lines)

    def total(self, *parts: str) -> int:
        return sum(n for (part, _, _), n in self.counts.items() if part in parts)


def table(counts: Counter[Key]) -> str:
    """By operation and family of fault, then by fault, then the rest."""
    from faults.kinds import FAMILIES, family

    lines: list[str] = []
    in_front = {key: n for key, n in counts.items() if key[0] in IN_FRONT}
    if in_front:
        names = [name for name, _ in FAMILIES]
        cells: Counter[tuple[str, str]] = Counter()
        for (_, operation, fault), n in in_front.items():
            cells[operation, family(fault)] += n
        lines += ["in-process schedules by operation and family of the (first) fault:", ""]
        lines.append(f"  {'':38}" + "".join(f"{name:>12}" for name in (*names, "all")))
        for operation in sorted({operation for operation, _ in cells}):
            row = [cells[operation, name] for name in names]
            lines.append(f"  {operation:38}" + "".join(f"{n or '':>12}" for n in (*row, sum(row))))
        totals = [sum(n for (_, each), n in cells.items() if each == name) for name in names]
        lines.append(f"  {'all':38}" + "".join(f"{n:>12}" for n in (*totals, sum(totals))))
        lines += ["", f"  {'fault':58}{'alone':>8}{'first of 2':>12}"]
        for fault in sorted({fault for _, _, fault in in_front}):
            alone, first = (
                sum(n for (part, _, each), n in in_front.items() if (part, each) == (which, fault))
                for which in ("single", "pair")
            )
            lines.append(f"  {fault:58}{alone:>8}{first:>12}")
    for part, title in (
        ("S3", "schedules on S3 by operation and fault:"),
        ("publication", "schedules of the publication alone, by what is published and the (first) fault:"),
        ("history", "random histories:"),
        ("S3 history", "random histories on S3:"),
        ("kill", "kills:"),
        ("servers", "stops and kills of one of two servers:"),
    ):
        of_part = {(operation, fault): n for (each, operation, fault), n in counts.items() if each == part}
        if of_part:
            lines += ["", title, ""]
            lines += (
                _matrix(of_part) if part == "S3" else [f"  {a:38}{b:60}{n:>9}" for (a, b), n in sorted(of_part.items())]
            )
    return "\n".join(lines)


def _matrix(cells: dict[tuple[str, str], int]) -> list[str]:
    operations = sorted({operation for operation, _ in cells})
    faults = sorted({fault for _, fault in cells})
    lines = [f"  {number:>2} {fault}" for number, fault in enumerate(faults, start=1)]
    lines += ["", f"  {'':38}" + "".join(f"{number:>5}" for number in range(1, len(faults) + 1)) + f"{'all':>7}"]
    for operation in operations:
        row = [cells.get((operation, fault), 0) for fault in faults]
        lines.append(f"  {operation:38}" + "".join(f"{n or '':>5}" for n in row) + f"{sum(row):>7}")
    totals = [sum(cells.get((operation, fault), 0) for operation in operations) for fault in faults]
    lines.append(f"  {'all':38}" + "".join(f"{n:>5}" for n in totals) + f"{sum(totals):>7}")
    return lines
