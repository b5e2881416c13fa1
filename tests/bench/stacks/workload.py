"""What all stacks are given to do: who subscribes to which topics, and what is published when."""

from __future__ import annotations

import math
import random
from string import ascii_uppercase

from attrs import field, frozen

SEED = 1
LETTERS = 4  # of a topic's name
LEAST_BYTES = 32  # of an event, which begins with its number and a time


@frozen
class Workload:
    """Peers and events, and who subscribes to which topics."""

    peers: int = 40
    processes: int = 8  # that they share evenly
    topics: int = 20
    matches: int = 10  # subscribers of each topic, so deliveries of each event
    rate: float = 200.0  # events a second of the steady stream
    seconds: float = 10.0  # its length; the burst has as many events
    rest: float = 20.0  # seconds before that in which nothing is published
    bytes_each: int = 250  # of an event's payload
    window: int = 10  # events of a peer that may wait to be taken at a time, in the burst
    names: tuple[str, ...] = field(init=False)
    subscribers: dict[str, tuple[int, ...]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._check()
        draws = random.Random(SEED)
        names: dict[str, None] = {}
        while len(names) < self.topics:
            names["".join(draws.choices(ascii_uppercase, k=LETTERS))] = None
        drawn = {name: tuple(draws.sample(range(self.peers), self.matches)) for name in names}
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "subscribers", drawn)

    def _check(self) -> None:
        """Raises `ValueError` in a sentence on what cannot be."""
        for name in ("processes", "topics", "matches", "rate", "seconds", "rest", "window"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} is to be a number above 0, not {getattr(self, name)}")
        if self.peers < 2:
            raise ValueError(f"at least 2 peers are needed, not {self.peers}")
        if self.processes > self.peers:
            raise ValueError(f"{self.peers} peers do not fill {self.processes} processes")
        if self.matches > self.peers:
            raise ValueError(f"{self.peers} peers cannot make {self.matches} matches of an event")
        if self.events < 1:
            raise ValueError(f"{self.rate} events a second for {self.seconds} s are none")
        if self.bytes_each < LEAST_BYTES:
            raise ValueError(f"an event takes at least {LEAST_BYTES} bytes, not {self.bytes_each}")

    def __str__(self) -> str:
        return (
            f"{self.peers} peers in {self.processes} processes, {self.topics} topics, "
            f"{self.matches} deliveries an event of {self.bytes_each} bytes; {self.events:,} "
            f"events at {self.rate:g} a second, then as many as a burst"
        )

    @property
    def events(self) -> int:
        return round(self.rate * self.seconds)

    def shares(self) -> list[list[int]]:
        return [
            [peer for peer in range(self.peers) if peer * self.processes // self.peers == process]
            for process in range(self.processes)
        ]

    def wanted(self, peer: int) -> list[str]:
        return [name for name in self.names if peer in self.subscribers[name]]

    def topic_of(self, number: int) -> str:
        """The topic of an event: all in turn, each from another publisher the next time."""
        return self.names[(number + number // self.peers) % self.topics]
