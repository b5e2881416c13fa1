"""Covering within a cluster: what a wider subscription does for a narrower one.

Beyond the paper, which leaves it out (Sec. 7.2) but says that a cluster, a tree, allows it;
`ScotSettings.covering`. A broker does not pass a subscription on while another one covers it that
came from the same direction (from the same neighbour, or likewise from a client of its own) and was
passed on itself. That went to the same brokers, primary and secondary, and leads back here.

Deliveries are the same as without. Take a subscription S and a broker in its cluster that a
notification for S comes to. Either S is known there, and the next hop is the one that it came from.
Or some broker on the way keeps S back for T, which covers S and came from the same direction; then
the notification matches T, or in turn what keeps T back, and moves on the tree towards that broker,
as all of these lie in one direction. There S is known. Secondary neighbours know the same
subscriptions, and the vector of T names the cluster that S is in. When T is taken back, what it
kept back is passed on first; links are first in, first out, so there is no gap.

Where clients are taken over (`take_over`) links fail, and what goes around them may come in another
order. So T keeps nothing back until all that was to follow from it is acknowledged: from then on
whoever is to know S knows T, or hears of it before it acknowledges anything. And the end of T is
sent once what T alone kept back is acknowledged in turn (`take_over.promises`). So S is promised no
less than T was: a notification for S goes where one for T goes, around failures as well, and the
backups of a broker know what its clients asked for by themselves.
"""

from __future__ import annotations

from gossamer.protocol.brokers.scot.memory.state import State
from gossamer.protocol.brokers.scot.memory.table import Entry


def keeps_back(state: State, entry: Entry) -> bool:
    """Whether a subscription that is in the table need not be passed on."""
    if not state.settings.covering or state.cluster not in entry.host:
        return False
    return any(
        other.id not in state.covered and state.take_over.stands(other.id)
        for other in state.table.covering(entry)
    )


def uncovered_without(state: State, gone: Entry) -> list[Entry]:
    """Subscriptions that are to be passed on, as one that was has just left the table."""
    if not state.covered or state.cluster not in gone.host:
        return []
    found = []
    for entry in sorted(state.table.covered_by(gone), key=lambda other: other.id):
        if entry.id in state.covered:
            # Taken for passed on at once, so that it may keep back those that follow.
            state.covered.discard(entry.id)
            if keeps_back(state, entry):
                state.covered.add(entry.id)
            else:
                found.append(entry)
    return found
