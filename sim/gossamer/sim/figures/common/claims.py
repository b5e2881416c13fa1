"""Claims of a paper, checked: what it says, what was measured, whether that holds.

A claim is a number of checks. Each sets one measured value against the paper's number and against
the bounds within which we call it the same; a claim holds if all of its checks do.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import attrs

CLAIMS_FILE = "claims.json"
CHECKS_FILE = "checks.json"

SHARE, HOPS, RATIO = "share", "hops", "ratio"
SECONDS, COUNT = "s", "count"


@attrs.frozen
class Check:
    """One measured value and what it is held against.

    Attributes:
        name: what was measured, in words.
        value: the measured value; NaN, where there was nothing to measure, never holds.
        unit: SHARE (0 to 1, printed in per cent), HOPS, RATIO, SECONDS or COUNT.
        paper: what the paper says of it, in words; nothing where the bounds are our own.
        low, high: the bounds that we accept, both included.
    """

    name: str
    value: float
    unit: str
    paper: str = ""
    low: float = -math.inf
    high: float = math.inf

    @property
    def holds(self) -> bool:
        """Whether the value is within its bounds."""
        return self.low <= self.value <= self.high

    def measured(self) -> str:
        """Name and value, for people."""
        return f"{self.name} {self.formatted(self.value)}"

    def finding(self) -> str:
        """Name and value beside the paper's number and the bounds."""
        paper = f"paper: {self.paper}; " if self.paper else ""
        return f"{self.measured()} ({paper}accepted: {self.bounds()})"

    def bounds(self) -> str:
        """The bounds that we accept, for people."""
        if math.isinf(self.low):
            return f"at most {self.formatted(self.high)}"
        if math.isinf(self.high):
            return f"at least {self.formatted(self.low)}"
        return f"{self.formatted(self.low)} to {self.formatted(self.high)}"

    def formatted(self, value: float) -> str:
        """A value in the unit of this check, for people."""
        if not math.isfinite(value):
            return "not measured"
        if self.unit == SHARE:
            return f"{100 * value:.1f} %" if abs(value) >= 0.01 else f"{100 * value:.2g} %"
        if self.unit == RATIO:
            return f"{value:.2f}"
        if self.unit == COUNT:
            return f"{value:,.0f}"
        if self.unit == SECONDS:
            return f"{_significant(value)} {self.unit}"
        return f"{value:.1f} hops"


@attrs.frozen(kw_only=True)
class Reading:
    """A named alternative to the literal reading of a paper.

    Attributes:
        name: the settings that make it.
        sentences: each with the paper's words on which it turns, or what the paper leaves open,
            and why it is plausible; and whether it was chosen knowing what the paper found.
    """

    name: str
    sentences: tuple[str, ...]


@attrs.frozen
class Claim:
    """A claim with its verdict.

    Attributes:
        id: as "V1".
        claim: what the paper says.
        checks: what decides.
        explanation: why the values are as they are where they differ, in words.
        note: what a reader has to know either way, in words.
        skipped: why it was not checked, in words; then it has no checks.
        reading: another reading of the paper, None: there is none.
        alternative: the claim judged under it, with the same bounds.
        contradiction: numbers of the paper that exclude each other, in words.
    """

    id: str
    claim: str
    checks: Sequence[Check]
    explanation: str
    note: str = ""
    skipped: str = ""
    reading: Reading | None = None
    alternative: Claim | None = None
    contradiction: str = ""

    @property
    def holds(self) -> bool:
        """Whether all checks hold; a claim without checks does not."""
        return bool(self.checks) and all(check.holds for check in self.checks)

    @property
    def verdict(self) -> str:
        """ "holds", "differs", or "skipped"."""
        if self.skipped:
            return "skipped"
        return "holds" if self.holds else "differs"

    @property
    def measured(self) -> str:
        """All measured values, for people."""
        return "; ".join(check.measured() for check in self.checks)

    @property
    def reason(self) -> str:
        """What decided the verdict, and why values differ where they do."""
        if self.skipped:
            return self.skipped
        missed = [check.finding() for check in self.checks if not check.holds]
        if not missed:
            parts = ["every value is within its bounds", self.note]
        else:
            parts = ["; ".join(missed), self.explanation, self.note]
        return ". ".join(part for part in parts if part)

    def entry(self) -> dict[str, Any]:
        """The claim's entry in ``claims.json``."""
        found: dict[str, Any] = {
            "id": self.id,
            "claim": self.claim,
            "measured": self.measured,
            "verdict": self.verdict,
            "reason": self.reason,
        }
        if self.reading is not None and self.alternative is not None:
            other = self.alternative
            found["alternative"] = {
                "reading": self.reading.name,
                "sentences": list(self.reading.sentences),
                "measured": other.measured,
                "verdict": other.verdict,
                "reason": other.reason,
            }
        if self.contradiction:
            found["contradiction"] = self.contradiction
        return found


def write_claims(claims: Sequence[Claim], folder: Path) -> None:
    """Write ``claims.json``, and the numbers behind it as ``checks.json``, into ``folder``.

    Checks of an alternative reading follow those of the claim, and have its name as ``reading``.
    """
    _write_json([claim.entry() for claim in claims], folder / CLAIMS_FILE)
    _write_json([row for claim in claims for row in _check_rows(claim)], folder / CHECKS_FILE)


def _check_rows(claim: Claim) -> Iterator[dict[str, Any]]:
    for check in claim.checks:
        yield {"claim": claim.id, **_plain(attrs.asdict(check)), "holds": check.holds}
    if claim.reading is not None and claim.alternative is not None:
        for row in _check_rows(claim.alternative):
            yield {**row, "reading": claim.reading.name}


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """``values`` with None for what JSON does not know: NaN, and bounds that are not there."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in values.items()
    }


def _write_json(content: Any, file: Path) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    file.write_text(text + "\n", encoding="utf-8")


def _significant(value: float) -> str:
    """Three significant digits at least, never in powers of ten where it is large."""
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


# Claims under two readings of a paper, side by side.
#
# The literal reading is judged always. Where a sentence can be read in another way, or a paper
# leaves a set-up open, the claim is judged under a named alternative as well, by the same checks
# with the same bounds: an alternative never replaces the literal reading.
#
# readings.md  a table for people: every check with the paper's number and both values


READINGS_FILE: Final = "readings.md"
LITERAL, ALTERNATIVE = "literal", "alternative"
_HEADINGS: Final = ("claim", "check", "paper", "accepted", "literal", "alternative")
_HOLDS: Final = "✓"


def side_by_side(
    literal: Sequence[Claim],
    alternative: Sequence[Claim],
    readings: Mapping[str, Reading],
    contradictions: Mapping[str, str] = MappingProxyType({}),
) -> list[Claim]:
    """The claims as read literally, each with its alternative where there is one.

    Args:
        literal: all claims.
        alternative: the same, judged on what the alternative's runs gave; those of which
            ``readings`` knows nothing are left out.
        readings: the alternatives, by claim.
        contradictions: what the paper says against a claim itself, by claim.

    Raises:
        ValueError: a claim would be held to other bounds under its alternative.
    """
    others = {claim.id: claim for claim in alternative if claim.id in readings}
    paired = []
    for one in literal:
        claim = attrs.evolve(one, contradiction=contradictions.get(one.id, ""))
        other = others.get(claim.id)
        if other is None:
            paired.append(claim)
            continue
        if list(map(_bounds, claim.checks)) != list(map(_bounds, other.checks)):
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
