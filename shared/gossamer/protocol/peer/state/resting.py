"""Gossip that rests while nothing changes: Trickle (RFC 6206). Goes beyond the paper.

With `rest_rounds` R above 1 a peer takes its turn, in which it gossips, asks its neighbours and
installs what it wants, in rounds only that are, shifted by its key, multiples of an interval. The
interval doubles, up to R, with each turn before which nothing stirred the peer; what stirs it gives
it `AWAKE_TURNS` turns in a row, as in the paper. That is

- another neighbour on the ring, host or guest, or one that has moved, and a neighbour that failed;
- its own place, its subscriptions, its start, a connection that broke, an event that it missed;
- a partner that lacks a neighbour which, by the own links, it should have on the ring: so those
  who know of a change wake those who do not (Trickle's inconsistent transmission).

In rounds between turns links and views age as ever, suspects are dropped, and all that events wait
for is done. Fingers that have changed are asked on for some rounds, and where links or what others
install here have changed, what follows from it is installed, without a turn. Neighbours that are
sent an event answer for it: who is not heard of until the next round is asked whether it lives.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.settings.config import MOST_REST_LEVELS
from gossamer.protocol.peer.state.state import (
    AWAKE,
    FINGERS_UNTIL,
    INSTALLS_SOON,
    LEVEL,
    State,
)

# Turns in a row of a peer that was stirred.
AWAKE_TURNS = 4
# Rounds in which fingers are asked that have changed.
FINGER_ROUNDS = 3
# Intervals of its sender for which an installation holds.
INTERVALS_INSTALLED = 3
# Turns are numbered up to here, so that a few times as many are no large number.
_TURN_NUMBERS = 1 << 30


@inline_rule
def may_rest(s: State) -> Any:
    """Whether peers rest at all."""
    return s.rest.shape[1] > 0


@inline_rule
def interval(s: State, p: int) -> Any:
    """Rounds from one turn of ``p`` to the next."""
    return 1 << s.rest[p, LEVEL] if may_rest(s) else 1


@rule
def is_turn(s: State, p: int, number: int) -> bool:
    """Whether ``p``'s round of this number is one of its turns."""
    return bool((number + s.sampler.key[p]) % interval(s, p) == 0)


@rule
def turn_number(s: State, p: int) -> int:
    """A number for the present round that grows by one from turn to turn, for what takes turns."""
    number = s.round[p]
    if may_rest(s) and s.rest[p, LEVEL] > 0:
        number = ((number + s.sampler.key[p]) >> s.rest[p, LEVEL]) % _TURN_NUMBERS
    return int(number)


@rule
def stir(s: State, p: int) -> None:
    """Something has changed near ``p``: let its next rounds be turns."""
    if may_rest(s):
        s.rest[p, LEVEL] = 0
        s.rest[p, AWAKE] = AWAKE_TURNS


@rule
def next_level(s: State, p: int) -> int:
    """The level at which ``p`` rests after a turn, unless it is stirred."""
    if not may_rest(s) or s.rest[p, AWAKE] > 1:
        return 0
    return int(min(s.rest[p, LEVEL] + 1, s.params.rest_levels))


@rule
def end_turn(s: State, p: int) -> None:
    """A turn of ``p`` is over: if it was a quiet one, rest for longer."""
    if may_rest(s):
        s.rest[p, LEVEL] = next_level(s, p)
        s.rest[p, AWAKE] = max(s.rest[p, AWAKE] - 1, 0)


@rule
def note_finger_changed(s: State, p: int) -> None:
    """A finger of ``p`` is another, or stands elsewhere: those beyond it may be others, too."""
    if may_rest(s):
        s.rest[p, FINGERS_UNTIL] = s.round[p] + FINGER_ROUNDS


@rule
def asks_fingers(s: State, p: int) -> bool:
    """Whether ``p`` asks fingers in this round."""
    if is_turn(s, p, s.round[p]):
        return True
    return bool(s.round[p] <= s.rest[p, FINGERS_UNTIL])


@rule
def install_soon(s: State, p: int) -> None:
    """Links have changed, or what others ask for here: let that be passed on, turn or not."""
    if may_rest(s):
        s.rest[p, INSTALLS_SOON] = 1


@rule
def installed_rounds(s: State, level: int) -> int:
    """For how many rounds an entry lives whose owner says that it rests at a level.

    It may rest for longer than this peer does.
    """
    level = min(max(level, 0), MOST_REST_LEVELS)
    if level == 0:
        return s.params.entry_lifetime
    return int(max(s.params.entry_lifetime, INTERVALS_INSTALLED << level))
