"""Claims under two readings of a paper, side by side.

The literal reading is judged always. Where a sentence can be read in another way, or a paper leaves
a set-up open, the claim is judged under a named alternative as well, by the same checks with the
same bounds: an alternative never replaces the literal reading.

readings.md  a table for people: every check with the paper's number and both values
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from gossamer.sim.figures.common.claims import Check, Claim, Reading

READINGS_FILE: Final = "readings.md"
LITERAL, ALTERNATIVE = "literal", "alternative"
_HEADINGS: Final = ("claim", "check", "paper", "accepted", "literal", "alternative")
_HOLDS: Final = "✓"


def side_by_side(
    literal: Sequence[Claim], alternative: Sequence[Claim], readings: Mapping[str, Reading]
) -> list[Claim]:
    """The claims as read literally, each with its alternative where there is one.

    Args:
        literal: all claims.
        alternative: the same, judged on what the alternative's runs gave; those of which
            ``readings`` knows nothing are left out.
        readings: the alternatives, by claim.

    Raises:
        ValueError: a claim would be held to other bounds under its alternative.
    """
    others = {claim.id: claim for claim in alternative if claim.id in readings}
    paired = []
    for claim in literal:
        other = others.get(claim.id)
        if other is None:
            paired.append(claim)
            continue
        if [_bounds(one) for one in claim.checks] != [_bounds(one) for one in other.checks]:
            raise ValueError(f"claim {claim.id} has other bounds under its alternative reading")
        paired.append(attrs.evolve(claim, alternative=other, reading=readings[claim.id]))
    return paired


def write_readings(claims: Sequence[Claim], folder: Path) -> None:
    """Write ``readings.md`` into ``folder``."""
    (folder / READINGS_FILE).write_text("\n".join(_lines(claims)) + "\n", encoding="utf-8")


def _bounds(check: Check) -> tuple[float, float, str]:
    return check.low, check.high, check.unit


def _lines(claims: Sequence[Claim]) -> Iterator[str]:
    yield "# Claims under both readings"
    yield ""
    yield f"| {' | '.join(_HEADINGS)} |"
    yield "|---" * len(_HEADINGS) + "|"
    for claim in claims:
        yield from _rows(claim)
    yield ""
    yield "## Which sentence decides"
    yield ""
    for sentence, ids in _by_sentence(claims).items():
        yield f"- {', '.join(ids)}: {sentence}."
    against = [claim for claim in claims if claim.contradiction]
    if against:
        yield ""
        yield "## What contradicts itself"
        yield ""
    for claim in against:
        yield f"- {claim.id}: {claim.contradiction}."


def _by_sentence(claims: Sequence[Claim]) -> dict[str, list[str]]:
    """The claims that turn on each sentence."""
    found: dict[str, list[str]] = {}
    for claim in claims:
        for sentence in claim.reading.sentences if claim.reading is not None else ():
            found.setdefault(sentence, []).append(claim.id)
    return found


def _rows(claim: Claim) -> Iterator[str]:
    other = claim.alternative
    verdicts = claim.verdict, "no other" if other is None else other.verdict
    yield f"| **{claim.id}** |  |  |  | {verdicts[0]} | {verdicts[1]} |"
    beside = [None] * len(claim.checks) if other is None else other.checks
    for check, found in zip(claim.checks, beside, strict=True):
        cells = ["", check.name, check.paper, check.bounds(), _value(check)]
        yield f"| {' | '.join([*cells, '' if found is None else _value(found)])} |"


def _value(check: Check) -> str:
    return f"{check.formatted(check.value)} {_HOLDS if check.holds else ''}".rstrip()
