"""Which of the drawn cases a campaign runs: `--draws N` and `--first-draw N` of pytest."""

from __future__ import annotations

import attrs


@attrs.frozen
class Draws:
    """Cases drawn from numbers that follow each other, so that several processes share them.

    Attributes:
        count: how many; None where the command line does not say.
        first: the number that the first one is drawn from.
    """

    count: int | None
    first: int

    def numbers(self, count: int) -> range:
        """The numbers to draw from, ``count`` of them where the command line does not say."""
        return range(self.first, self.first + (count if self.count is None else self.count))
