"""The logs of events that peers hold and got, and how far they are in comparing them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.rows.hash_chains import chains_of
from gossamer.protocol.kernel.struct import Struct
from gossamer.protocol.peer.record_table.records import LEVELS, PUBLISHER_CLASSES
from gossamer.protocol.peer.settings.config import Settings

Int64s = npt.NDArray[np.int64]

# Events that a peer notes which its application got, at least.
LEAST_GOT = 4096
# A round before all that count.
LONG_AGO = -(1 << 62)

# Words of `State.comparison`, how far a peer is in comparing what it has with what others have (see
# `recovery.comparing`).
#
# The task in hand (-1 where it rests), and the part of the ring that is left of it.
TASK, PART_FROM, PART_TO = 0, 1, 2
# Up to where the one who answers compares (-1 unknown), who that is (-1 to be found), of which
# round and later the copies are, and by which number they are hashed.
ENDS_AT, ANSWERER, SINCE, SALT = 3, 4, 5, 6
# The range of hashes in hand, by its prefix (or an offer, by its name); what was asked about it, in
# which round, and how many times already.
LEVEL, PREFIX, QUESTION, ASKED_IN, TRIES = 7, 8, 9, 10, 11
# Questions asked in this round; the round in which it begins anew, and for how long it rests then.
QUESTIONS, NEXT_AT, REST = 12, 13, 14
FIRST_REST = 4
# Copies that were lacking here and came, whether nothing is known to be missing, and whether there
# was no answer.
LACKED, IS_WHOLE, UNANSWERED = 15, 16, 17
# Of which classes of publishers, as bits, and of which round and later copies are wanted at all.
CLASSES, WANTED_SINCE = 18, 19
# For each level, as bits, which sixteenths of a range differ and are still to be compared.
DIFFERING = 20
COMPARISON_WORDS = DIFFERING + LEVELS


class Log(Struct):
    """Event copies of the last time, M at most; place i % M has the i-th.

    Attributes:
        copies: int64[n, M], -1 where one was taken out.
        rounds: int64[n, M], when they were published, in rounds of this peer.
        values: int64[n, M, A].
        next: int64[n], how many ever were in it.
        shares: int64[n, `PUBLISHER_CLASSES`], how many of each class of publishers are in it.
        whole_since: int64[n, `PUBLISHER_CLASSES`], of each class the copies of this round and later
            had to make room for none.
        heads, older: int64[n, H] and [n, M], chains of ``copies`` (see `kernel.rows.hash_chains`);
            int64[n, 0] where M is small.
    """

    copies: Int64s
    rounds: Int64s
    values: Int64s
    next: Int64s
    shares: Int64s
    whole_since: Int64s
    heads: Int64s
    older: Int64s


def got_events(settings: Settings) -> int:
    """How many events a peer notes that its application got, whatever it holds for others."""
    return max(settings.held_events, LEAST_GOT) if settings.retention_rounds > 0 else 0


def make_log(settings: Settings, nodes: int, size: int) -> Log:
    """Logs of so many places with nothing in them: zeros, which take no memory until written."""
    a = settings.coordinates
    heads, older = chains_of(size)
    return Log(
        copies=np.zeros((nodes, size), np.int64),
        rounds=np.zeros((nodes, size), np.int64),
        values=np.zeros((nodes, size, a), np.int64),
        next=np.zeros(nodes, np.int64),
        shares=np.zeros((nodes, PUBLISHER_CLASSES), np.int64),
        whole_since=np.full((nodes, PUBLISHER_CLASSES), LONG_AGO),
        heads=np.zeros((nodes, heads), np.int64),
        older=np.zeros((nodes, older), np.int64),
    )


def make_comparison(nodes: int, words: int) -> Int64s:
    """Nobody compares yet, and nothing is known to be missing."""
    comparison = np.zeros((nodes, words), np.int64)
    comparison[:, TASK : TASK + 1] = -1
    comparison[:, REST : REST + 1] = FIRST_REST
    comparison[:, IS_WHOLE : IS_WHOLE + 1] = 1
    return comparison
