"""The one door of a peer: `step` takes one record and writes what follows from it.

Hosts (the simulator's engines, a network node) turn everything that happens into records: timers,
commands, messages of other peers, and messages that came back because nobody was there. `step`
hands each to its rule. What a peer wants to happen is again records: messages to send and events
to deliver. Nothing else passes between protocol and host.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    KIND,
    LENGTH,
    TO,
    UNREACHABLE,
    Outbox,
    Words,
    dispatch,
)
from gossamer.protocol.kernel.rules import Rule, rule, standalone_rule
from gossamer.protocol.peer.commands import (
    join_record,
    largest_step,
    publish_record,
    restart,
    subscribe,
)
from gossamer.protocol.peer.record_table import records as kinds
from gossamer.protocol.peer.record_table.fields import Sort
from gossamer.protocol.peer.recovery.answering import compare_elsewhere, on_compare
from gossamer.protocol.peer.recovery.comparing import (
    compare_on,
)
from gossamer.protocol.peer.recovery.occasions import (
    expect_difference,
    expect_difference_before,
    on_catch_up,
    on_compare_soon,
    on_rounds_skipped,
)
from gossamer.protocol.peer.recovery.repairing import (
    on_compared,
    on_lacking,
    on_listed,
    on_repaired,
)
from gossamer.protocol.peer.rendezvous.arc_return import (
    arc_begins,
    hand_on_again,
    hand_on_what_is_due,
    on_link_broke,
    predecessor_handle,
)
from gossamer.protocol.peer.rendezvous.delivery import on_handover
from gossamer.protocol.peer.rendezvous.event_routing import (
    on_event,
    on_event_taken,
    on_publish,
    publish_again,
    reroute_event,
    send_again,
)
from gossamer.protocol.peer.rendezvous.installation import (
    greet_successor,
    on_acknowledge,
    on_install,
    reinstall_elsewhere,
)
from gossamer.protocol.peer.rendezvous.installation import (
    on_install_timer as install_again,
)
from gossamer.protocol.peer.rendezvous.publication import (
    answer_over_neighbours,
    on_stored,
    on_stored_for,
    on_withdraw,
)
from gossamer.protocol.peer.rendezvous.questions import ask_those_sent_to
from gossamer.protocol.peer.rendezvous.replay import on_replay_offer, on_replay_wanted
from gossamer.protocol.peer.rendezvous.ring_offers import offer_last_round, on_ring_offer
from gossamer.protocol.peer.sampling.sampler import sample_link_broke
from gossamer.protocol.peer.state.links import handle_in, is_off_ring, note_heard
from gossamer.protocol.peer.state.resting import end_turn, is_turn, stir
from gossamer.protocol.peer.state.routing_table import remove_source
from gossamer.protocol.peer.state.state import GREETINGS, State
from gossamer.protocol.peer.topology.fingers import (
    exchange_fingers,
    on_finger_reply,
    on_finger_request,
)
from gossamer.protocol.peer.topology.guests import on_find_host, on_host_found, visit_host
from gossamer.protocol.peer.topology.load_shifting import on_load_shifted, shift_load
from gossamer.protocol.peer.topology.membership import (
    find_place_elsewhere,
    is_on_ring,
    on_failure,
    on_find_place,
    on_join,
    on_place_found,
    repair_ring,
)
from gossamer.protocol.peer.topology.moving import (
    continue_move,
    on_find_seat,
    on_seat_found,
)
from gossamer.protocol.peer.topology.placement import keep_entries, on_moved
from gossamer.protocol.peer.topology.sampling_records import SAMPLING
from gossamer.protocol.peer.topology.tman import on_overlay_timer as trade_links
from gossamer.protocol.peer.topology.tman import on_tman_reply, on_tman_request

__all__ = [
    "ABOUT_EVENTS",
    "ABOUT_PEERS",
    "RETURNED",
    "TIMERS",
    "join_record",
    "largest_step",
    "publish_record",
    "restart",
    "step",
    "subscribe",
    "take_about_events",
    "take_and_settle",
]

# New successors that a peer greets in a round, and one more.
MOST_GREETINGS = 16

TIMERS = tuple(kind.number for kind in kinds.TABLE if kind.sort is Sort.TIMER)


@rule
def on_overlay_timer(s: State, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
    """Let load shift, trade links and fingers, and look for a host and for a better place."""
    ask_those_sent_to(s, p, out)
    if not is_off_ring(s, p):
        shift_load(s, p, out)
        trade_links(s, p, now, words, at, out)
        exchange_fingers(s, p, out)
        visit_host(s, p, out)
    take_about_places(s, p, now, words, at, out)


@rule
def on_place_timer(s: State, p: int, now: int, _words: Words, _at: int, out: Outbox) -> None:
    """Keep entries where it is no member of the ring, and look for a better place."""
    if is_off_ring(s, p):
        keep_entries(s, p, now)
    continue_move(s, p, out)


@rule
def on_install_timer(s: State, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
    """Renew what is asked for; publish and ask again what was not answered."""
    was_turn = is_turn(s, p, s.round[p])
    install_again(s, p, out)
    take_about_events(s, p, now, words, at, out)
    if was_turn:
        end_turn(s, p)


@rule
def on_event_timer(s: State, p: int, _now: int, _words: Words, _at: int, out: Outbox) -> None:
    """Publish and ask again what was not answered."""
    publish_again(s, p, out)
    compare_on(s, p, out)
    hand_on_again(s, p, out)
    send_again(s, p, out)
    offer_last_round(s, p, out)


@rule
def on_broken_link(s: State, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
    """What was on its way to a peer may be lost, and the peer may have failed."""
    on_link_broke(s, p, now, words, at, out)
    if words[at + LENGTH] == BODY + 1:
        expect_difference(s, p)
        stir(s, p)
    sample_link_broke(s.sampler, p, now, words, at, out)


# Records that are about events and leave all links as they are.
ABOUT_EVENTS: Final = MappingProxyType(
    {
        kinds.EVENT: on_event,
        kinds.EVENT_TAKEN: on_event_taken,
        kinds.STORED: on_stored,
        kinds.STORED_FOR: on_stored_for,
        kinds.PUBLISH: on_publish,
        kinds.WITHDRAW: on_withdraw,
        kinds.REPLAY_OFFER: on_replay_offer,
        kinds.RING_OFFER: on_ring_offer,
        kinds.REPLAY_WANTED: on_replay_wanted,
        kinds.COMPARE: on_compare,
        kinds.COMPARED: on_compared,
        kinds.LISTED: on_listed,
        kinds.LACKING: on_lacking,
        kinds.REPAIRED: on_repaired,
        kinds.COMPARE_SOON: on_compare_soon,
        kinds.CATCH_UP: on_catch_up,
        kinds.ROUNDS_SKIPPED: on_rounds_skipped,
        kinds.LINK_BROKE: on_broken_link,
    }
)
# Records that may change links, by subject.
ABOUT_TOPOLOGY: Final = MappingProxyType(
    {
        kinds.OVERLAY_TIMER: on_overlay_timer,
        kinds.TMAN_REQUEST: on_tman_request,
        kinds.TMAN_REPLY: on_tman_reply,
        kinds.PLACE_FOUND: on_place_found,
        kinds.LOAD_SHIFTED: on_load_shifted,
        kinds.FINGER_REQUEST: on_finger_request,
        kinds.FINGER_REPLY: on_finger_reply,
        kinds.FIND_HOST: on_find_host,
        kinds.HOST_FOUND: on_host_found,
    }
)
ABOUT_INSTALLATION: Final = MappingProxyType(
    {
        kinds.INSTALL_TIMER: on_install_timer,
        kinds.INSTALL: on_install,
        kinds.INSTALL_NEWS: on_install,
        kinds.ACKNOWLEDGE: on_acknowledge,
        kinds.HANDOVER: on_handover,
    }
)
ABOUT_PLACES: Final = MappingProxyType(
    {
        kinds.JOIN: on_join,
        kinds.FIND_PLACE: on_find_place,
        kinds.FIND_SEAT: on_find_seat,
        kinds.SEAT_FOUND: on_seat_found,
        kinds.MOVED: on_moved,
    }
)
ABOUT_PEERS: Final = MappingProxyType(
    {**SAMPLING, **ABOUT_TOPOLOGY, **ABOUT_INSTALLATION, **ABOUT_PLACES}
)
# Records that came back, by the kind they were sent as; others are lost.
RETURNED: Final = MappingProxyType(
    {
        kinds.INSTALL: reinstall_elsewhere,
        kinds.INSTALL_NEWS: reinstall_elsewhere,
        kinds.EVENT: reroute_event,
        kinds.STORED: answer_over_neighbours,
        kinds.FIND_PLACE: find_place_elsewhere,
        kinds.COMPARE: compare_elsewhere,
    }
)


def _with_returned(table: Mapping[int, Rule]) -> dict[int, Rule]:
    """A table, and the rules for those of its records that came back."""
    returned = {UNREACHABLE + kind: RETURNED[kind] for kind in table if kind in RETURNED}
    return {**table, **returned}


_take_about_events = dispatch({**_with_returned(ABOUT_EVENTS), kinds.INSTALL_TIMER: on_event_timer})
_take_about_sampling = dispatch(SAMPLING)
_take_about_topology = dispatch(ABOUT_TOPOLOGY)
_take_about_installation = dispatch(_with_returned(ABOUT_INSTALLATION))
_take_about_places = dispatch({**_with_returned(ABOUT_PLACES), kinds.OVERLAY_TIMER: on_place_timer})


# Each subject is compiled by itself: an edited rule costs its own, and all are made side by side.
@standalone_rule
def take_about_events(s: State, p: int, now: int, words: Words, at: int, out: Outbox) -> bool:
    """Take a record that is about events; return whether it is one."""
    return bool(_take_about_events(words[at + KIND], s, p, now, words, at, out))


@standalone_rule
def take_about_sampling(s: State, p: int, now: int, words: Words, at: int, out: Outbox) -> bool:
    """Take a record of peer sampling; return whether it is one."""
    return bool(_take_about_sampling(words[at + KIND], s, p, now, words, at, out))


@standalone_rule
def take_about_topology(s: State, p: int, now: int, words: Words, at: int, out: Outbox) -> bool:
    """Take a record that is about links; return whether it is one."""
    return bool(_take_about_topology(words[at + KIND], s, p, now, words, at, out))


@standalone_rule
def take_about_installation(s: State, p: int, now: int, words: Words, at: int, out: Outbox) -> bool:
    """Take a record that is about subscriptions; return whether it is one."""
    return bool(_take_about_installation(words[at + KIND], s, p, now, words, at, out))


@standalone_rule
def take_about_places(s: State, p: int, now: int, words: Words, at: int, out: Outbox) -> bool:
    """Take a record that is about places on the ring; return whether it is one."""
    return bool(_take_about_places(words[at + KIND], s, p, now, words, at, out))


_take_event = dispatch(dict.fromkeys(ABOUT_EVENTS, take_about_events))
_take_about_peers = dispatch(
    {
        **dict.fromkeys(SAMPLING, take_about_sampling),
        **dict.fromkeys(ABOUT_TOPOLOGY, take_about_topology),
        **dict.fromkeys(ABOUT_INSTALLATION, take_about_installation),
        **dict.fromkeys(ABOUT_PLACES, take_about_places),
    }
)
_take_returned = dispatch(
    {
        kinds.INSTALL: take_about_installation,
        kinds.INSTALL_NEWS: take_about_installation,
        kinds.EVENT: take_about_events,
        kinds.STORED: take_about_events,
        kinds.FIND_PLACE: take_about_places,
        kinds.COMPARE: take_about_events,
    }
)


@standalone_rule
def step(s: State, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
    """Take the record at ``words[at:]`` as peer ``p``; append what follows to ``out``.

    Args:
        s: `State`; row ``p`` of it may change, no other.
        p: the row.
        now: the host's time in rounds; only timestamps of samplers follow it.
        words: int64 words that hold the record; the record itself may be overwritten.
        at: offset of the record's header.
        out: where records are appended; may share memory with ``words`` past the record.
    """
    if not _take_event(words[at + KIND], s, p, now, words, at, out):
        take_and_settle(s, p, now, words, at, out)


@rule
def take_and_settle(s: State, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
    """Take a record that may change links, and do what follows where those on the ring change."""
    if words[at + FROM] != s.sampler.handle[p]:
        note_heard(s, p, words[at + FROM])
    successor = successor_handle(s, p)
    predecessor = predecessor_handle(s, p)
    arc_start = arc_begins(s, p)
    kind = words[at + KIND]
    has_failed = kind >= UNREACHABLE and is_on_ring(s, p, words[at + TO])
    if not _take_about_peers(kind, s, p, now, words, at, out) and kind >= UNREACHABLE:
        on_unreachable(s, p, now, words, at, out)
    # What settles is a call of its own: most records leave the ring as it is.
    if (
        has_failed
        or successor_handle(s, p) != successor
        or predecessor_handle(s, p) != predecessor
        or arc_begins(s, p) != arc_start
    ):
        settle(s, p, has_failed, successor, predecessor, arc_start, out)


@standalone_rule
def settle(
    s: State,
    p: int,
    has_failed: bool,
    successor: int,
    predecessor: int,
    arc_start: int,
    out: Outbox,
) -> None:
    """Do what follows where links on the ring are others than before.

    Args:
        s: `State`.
        p: the row.
        has_failed: whether somebody on the ring is known to have failed.
        successor: the handle of the one before, or -1.
        predecessor: likewise.
        arc_start: where the arc began before.
        out: where records are appended.
    """
    if s.params.stabilise == 1:
        found = successor_handle(s, p)
        if found >= 0 and found != successor and may_greet(s, p):
            greet_successor(s, p, out)
    expect_difference_before(s, p, out)
    repair_ring(s, p, has_failed, successor, predecessor, out)
    hand_on_what_is_due(s, p, predecessor, arc_start, out)


@rule
def may_greet(s: State, p: int) -> bool:
    """Whether ``p`` may greet one more successor in this round.

    Where peers move, one may be told of as it was, greeted, found elsewhere, and told of again.
    """
    if s.params.move_rounds == 0:
        return True
    first = s.round[p] * MOST_GREETINGS
    if s.seat[p, GREETINGS] < first:
        s.seat[p, GREETINGS] = first
    s.seat[p, GREETINGS] += 1
    return bool(s.seat[p, GREETINGS] < first + MOST_GREETINGS)


@rule
def successor_handle(s: State, p: int) -> int:
    """Who ``p`` takes for its successor, or -1."""
    if s.successor[p] < 0:
        return -1
    return handle_in(s.links[p, s.successor[p]])


@standalone_rule
def on_unreachable(s: State, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
    """A record came back: its addressee failed. Forget it, and find another way (Sec. IV-C)."""
    on_failure(s, p, now, words, at, out)
    remove_source(s, p, words[at + TO])
    _take_returned(words[at + KIND] - UNREACHABLE, s, p, now, words, at, out)
