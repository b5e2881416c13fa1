"""How long input queues are at the end of a window, for brokers that tell their neighbours.

A queue is as long as notifications that its broker could match in the time that it needs to work
off what waits. What brokers tell each other of that takes no time here: it is a few bytes a window.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from gossamer.protocol.brokers.scot.memory.messages import InputQueue


@attrs.define(eq=False)
class InputQueues:
    """What was told of every input queue last.

    Attributes:
        works: microseconds that each broker works on a notification.
        lengths, taken: of each broker at the end of the window before.
    """

    works: Sequence[int]
    lengths: list[int] = attrs.field(init=False)
    taken: list[int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.lengths = [0] * len(self.works)
        self.taken = [0] * len(self.works)

    def at(self, now: int, free_at: Sequence[int], taken: Sequence[int]) -> dict[int, InputQueue]:
        """What there is to tell at the end of a window, by broker: queues that are not empty, or
        were not.

        Args:
            now: microseconds.
            free_at: when each broker will have worked off what waits.
            taken: messages that each has taken in so far.
        """
        told: dict[int, InputQueue] = {}
        for place, work in enumerate(self.works):
            length = -(-max(free_at[place] - now, 0) // max(work, 1))
            entered = taken[place] - self.taken[place]
            before, self.lengths[place], self.taken[place] = (
                self.lengths[place],
                length,
                taken[place],
            )
            if length or before:
                told[place] = InputQueue(length, entered, max(before + entered - length, 0))
        return told
