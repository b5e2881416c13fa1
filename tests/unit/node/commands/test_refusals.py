"""Lines that `gossamer pub --jsonl` does not publish: ten are named, the others counted by kind."""

from __future__ import annotations

import io

from gossamer.node.commands.clients.publishing import Report
from gossamer.node.commands.clients.refusals import KINDS, LISTED
from gossamer.node.errors import EventInputError


def said_of(*reasons: str) -> list[str]:
    """What is said of lines from 1 that are refused for these reasons."""
    report = Report(io.StringIO(), err := io.StringIO())
    for number, reason in enumerate(reasons, 1):
        report.refused(EventInputError(f"line {number}", reason))
    report.end(early=False)
    assert report.exit_code == 2
    *said, summary = err.getvalue().splitlines()
    assert f"; {len(reasons)} line" in summary
    return [one.removeprefix("gossamer: ") for one in said]


def test_ten_lines_are_named() -> None:
    assert said_of(*["no JSON"] * LISTED) == [f"line {n}: no JSON" for n in range(1, 11)]


def test_further_lines_are_counted_by_kind_whatever_their_values() -> None:
    wrong = [f"attribute 'price' takes a number, not the string \"x{n}\"" for n in range(2000)]
    said = said_of(*wrong, "no JSON (char 3)", "no JSON (char 4)", "longer than 9 bytes")
    assert said[LISTED:] == [
        "1,993 lines more:",
        f"  line 11: {wrong[10]} (and 1,989 like it)",
        "  line 2001: no JSON (char 3) (and 1 like it)",
        "  line 2003: longer than 9 bytes",
    ]


def test_so_many_kinds_are_named() -> None:
    said = said_of(*["no JSON"] * LISTED, *(f"no attribute '{'a' * n}'" for n in range(1, 400)))
    assert len(said) == LISTED + 1 + KINDS + 1
    assert said[LISTED] == "399 lines more:"
    counted = 300 + KINDS - 1  # the last kind stands for those that are too many
    assert said[-1] == f"  {399 - counted} lines for other reasons"
