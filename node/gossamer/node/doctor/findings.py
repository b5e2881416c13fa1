"""What the doctor's checks say, as a table for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from gossamer.command.tables import FittingTable


@attrs.frozen
class Finding:
    """What one check found.

    Attributes:
        check: what was checked, in a word or two.
        ok: whether it is as it should be.
        what: what was found, one sentence.
        advice: what to do about it, "" where there is nothing to do.
    """

    check: str
    ok: bool
    what: str
    advice: str = ""


def all_well(findings: Iterable[Finding]) -> bool:
    """Whether no check found a fault."""
    return all(finding.ok for finding in findings)


def findings_json(findings: Iterable[Finding]) -> str:
    """The findings for programs: ``{"ok": ..., "findings": [...]}``."""
    listed = list(findings)
    document = {"ok": all_well(listed), "findings": [attrs.asdict(one) for one in listed]}
    return json.dumps(document, indent=2)


def findings_table(findings: Iterable[Finding], title: str) -> FittingTable:
    """The findings for people, each fault with its advice."""
    from rich.text import Text

    from gossamer.command.tables import FittingTable

    table = FittingTable("check", "", "finding", title=title, title_justify="left")
    for finding in findings:
        sign = Text("ok", "green") if finding.ok else Text("fault", "bold red")
        # What other machines said may be in it: as text it cannot be taken for markup.
        words = Text(printable(finding.what))
        if finding.advice:
            words.append(f"\n{printable(finding.advice)}", "dim" if finding.ok else "bold")
        table.add_row(Text(finding.check), sign, words)
    return table


def printable(text: str) -> str:
    """``text`` without characters that would steer a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
