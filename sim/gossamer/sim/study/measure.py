"""One measure of a run: what it is called, how it is printed and what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["ratio", "number", "fine", "count"]


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of a system.

    Attributes:
        key: its name in ``summary.json``.
        label: its name for people.
        kind: "ratio" (0 to 1, printed as per cent), "number" (printed with two decimals), "fine"
            (with three significant digits at least) or "count" (printed whole).
        better: which direction is better, or None where neither is.
        meaning: one sentence that explains it.
        brief: whether it belongs in the short table at the end of a run.
    """

    key: str
    label: str
    kind: Kind
    better: Literal["higher", "lower"] | None
    meaning: str
    brief: bool = False

    @property
    def unit(self) -> str:
        """The unit of its values: words in brackets at the end of its label, or what it counts."""
        if self.kind == "ratio":
            return "share, 0 to 1"
        counted, _, in_brackets = self.label.rstrip(")").partition("(")
        return in_brackets or counted.partition(",")[0]

    def format(self, value: float | None) -> str:
        """``value`` as people read it; a dash where there was nothing to measure."""
        if value is None:
            return "-"
        if self.kind == "ratio":
            return f"{100 * value:.2f} %"
        if self.kind == "fine":
            return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
        if self.kind == "number":
            return f"{value:,.2f}"
        return f"{value:,.0f}"
