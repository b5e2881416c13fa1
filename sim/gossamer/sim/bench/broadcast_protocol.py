"""Broadcasts over the views of a sampler: how many nodes does a message reach?

The measure of the HyParView paper (Sec. 5.2): a node that gets a message for the first time sends
it on at once to those by whom its sampler takes part in broadcasts. A message that comes back lets
the sampler react.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.records import BODY, FROM, KIND, LENGTH, TO, USER, Outbox, Words
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import Struct
from gossamer.protocol.peer.sampling.sampler import SamplerState, broadcast, sample_step

# The kind of a message; its body is the number of the broadcast and the hops so far.
MESSAGE = USER
NUMBER, HOPS = BODY, BODY + 1


class Broadcasts(Struct):
    """A sampler, and what its nodes heard.

    Attributes:
        sampler: whose views messages follow.
        heard: int64[n], the last message of each node, 0 for none.
        hops: int64[n], by how many hops it came.
    """

    sampler: SamplerState
    heard: npt.NDArray[np.int64]
    hops: npt.NDArray[np.int64]


def make_broadcasts(sampler: SamplerState) -> Broadcasts:
    """Nodes with a sampler that have heard nothing."""
    nodes = len(sampler.key)
    return Broadcasts(
        sampler=sampler, heard=np.zeros(nodes, np.int64), hops=np.zeros(nodes, np.int64)
    )


def broadcast_record(node: int, number: int) -> Words:
    """The command that lets a node begin a broadcast; its number is above those before."""
    record = np.zeros(BODY + 2, np.int64)
    record[[LENGTH, KIND, TO, FROM]] = len(record), MESSAGE, node, node
    record[NUMBER] = number
    return record


@rule
def broadcast_step(s: Broadcasts, p: int, now: int, words: Any, at: int, out: Outbox) -> None:
    """The one door of a node that samples peers and passes messages on."""
    if words[at + KIND] != MESSAGE:
        sample_step(s.sampler, p, now, words, at, out)
    elif words[at + NUMBER] > s.heard[p]:
        s.heard[p] = words[at + NUMBER]
        s.hops[p] = words[at + HOPS]
        words[at + HOPS] += 1
        broadcast(s.sampler, p, now, words, at, out)
