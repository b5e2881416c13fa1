"""Records that no engine can pass on end a run with one sentence, compiled and interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.protocol.kernel.errors import CapacityError, RecordError
from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    KIND,
    LENGTH,
    TAIL,
    TO,
    UNREACHABLE,
    USER,
    Outbox,
    Words,
    close_record,
    drop_record,
    open_record,
)
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import Struct
from gossamer.sim.engine.cycle_engine import CycleEngine, make_network
from gossamer.sim.engine.event_engine import EventEngine, make_transitions
from gossamer.sim.engine.latency import constant_latency, matrix_latency
from gossamer.sim.engine.link_conditions import make_link_conditions
from gossamer.sim.errors import ScenarioError
from support.ping_protocol import make_pings, make_window_engine, ping_step, send_command

TURN, NEWS = USER, USER + 1
PEERS = 4
Header = tuple[int, ...]

ENGINES = pytest.mark.parametrize("engine", [CycleEngine, EventEngine, make_window_engine])

# What peer 2 does in its turn.
WRITE, FORGET, CLOSE_TWICE, OPEN_TWO, TOO_MUCH, MOVE_END, DROP = range(7)


class Faults(Struct):
    """What goes wrong.

    Attributes:
        fired: int64[n], records taken.
        what: int64[1], one of the above.
        header: int64[4], of the record that WRITE writes.
    """

    fired: Words
    what: Words
    header: Words


@rule
def step(
    state: Faults,
    p: int,
    now: int,  # noqa: ARG001  (as every step)
    words: Words,
    at: int,
    out: Outbox,
) -> None:
    """Write something wrong as peer 2, in its turn."""
    state.fired[p] += 1
    if words[at + KIND] == TURN and p == 2:
        right = open_record(out, NEWS, 1, p, 0)
        close_record(out, right, 0)
        write(state.header, state.what[0], p, out)


@rule
def write(header: Words, what: int, p: int, out: Outbox) -> None:
    if what == WRITE:
        one = open_record(out, header[KIND], header[TO], header[FROM], 0)
        close_record(out, one, header[LENGTH] - BODY)
        return
    if what == MOVE_END:
        out.cursor[TAIL] = len(out.words) + 1
        return
    one = open_record(out, NEWS, 3, p, 1 << 30 if what == TOO_MUCH else 1)
    if what == FORGET:
        out.words[one + BODY] = 5
    elif what == OPEN_TWO:
        other = open_record(out, NEWS, 3, p, 1)
        close_record(out, other, 1)
        close_record(out, one, 1)
    elif what == DROP:
        drop_record(out, one)
    else:
        close_record(out, one, 1)
        if what == CLOSE_TWICE:
            close_record(out, one, 1)


def run(engine: Any, what: int, header: Header = (BODY, NEWS, 0, 2), **options: Any) -> Any:
    fired, given = np.zeros(PEERS, np.int64), np.array(header, np.int64)
    state = Faults(fired=fired, what=np.array([what]), header=given)
    made = engine(state, step, (TURN,), make_network(PEERS), 1, **options)
    made.run_cycle()
    return made


@ENGINES
@pytest.mark.parametrize(
    ("place", "value", "fault"),
    [
        *((TO, peer, "TO is {}, expected a peer from 0 to 3") for peer in (PEERS, -1, 99)),
        *((TO, peer, "TO is {}, expected a peer from 0 to 3") for peer in (1 << 40, -(1 << 40))),
        *((FROM, peer, "FROM is {}, expected a peer from 0 to 3") for peer in (PEERS, -1)),
        *((KIND, one, "KIND is {}, expected 1 to 1048575") for one in (0, UNREACHABLE, 1 << 24)),
    ],
)
def test_wrong_words_of_a_header(engine: Any, place: int, value: int, fault: str) -> None:
    header = [BODY, NEWS, 1, 2]
    header[place] = value
    with pytest.raises(RecordError) as caught:
        run(engine, WRITE, tuple(header))
    error, fault = caught.value, fault.format(value)
    assert (error.kind, error.to, error.population) == (header[KIND], header[TO], PEERS)
    assert error.fault == fault
    if place == TO:
        assert error.sender == 2
        assert str(error) == (
            f"record of kind {NEWS} from peer 2 to peer {value} among 4 peers: {fault}"
        )


@ENGINES
@pytest.mark.parametrize("length", [0, 3, -8, 1 << 40])
def test_a_record_closed_with_an_impossible_length(engine: Any, length: int) -> None:
    with pytest.raises(RecordError, match=r"^record of kind "):
        run(engine, WRITE, (length, NEWS, 1, 2))


@ENGINES
@pytest.mark.parametrize(
    ("what", "fault"),
    [
        (FORGET, "it was opened and never closed, expected close_record before the step"),
        (CLOSE_TWICE, "records were opened and closed in turns or closed with less than a head"),
        (OPEN_TWO, "records were opened and closed in turns or closed with less than a head"),
        (MOVE_END, ""),
    ],
)
def test_records_not_opened_and_closed_in_turn(engine: Any, what: int, fault: str) -> None:
    with pytest.raises(RecordError) as caught:
        run(engine, what)
    assert caught.value.fault.startswith(fault)
    if what == FORGET:
        assert (caught.value.kind, caught.value.sender, caught.value.to) == (NEWS, 2, 3)


@ENGINES
def test_right_records_pass_and_going_on_after_a_refused_one_fails(engine: Any) -> None:
    with pytest.raises(CapacityError, match="the engine's outbox is full"):
        run(engine, TOO_MUCH, reserve=64)
    assert run(engine, WRITE, (BODY, NEWS, 3, 2)).state.fired.tolist() == [1, 2, 1, 2]
    assert run(engine, DROP).state.fired.tolist() == [1, 2, 1, 1]


@ENGINES
@pytest.mark.parametrize(
    ("place", "value"), [(TO, PEERS), (TO, -1), (FROM, PEERS), (FROM, -1), (TO, 1 << 40)]
)
def test_commands_of_hosts_are_checked_before_any_step(engine: Any, place: int, value: int) -> None:
    made = engine(make_pings(PEERS), ping_step, (), make_network(PEERS), 1)
    record = send_command(0, 1)
    record[place] = value
    with pytest.raises(RecordError, match=rf"{'TO' if place == TO else 'FROM'} is {value}, "):
        made.inject(record)
    record = send_command(0, 1)
    record[LENGTH] += 1
    with pytest.raises(ValueError, match="record of 6 words"):
        made.inject(record)
    assert made.state.taken.tolist() == [0] * PEERS
    made.inject(send_command(0, 1))
    if engine is make_window_engine:
        made.run_cycle()
    assert made.state.taken.tolist() == [0, 1, 0, 0]


def test_transitions_timers_and_links_of_rows_that_there_are_not_are_refused() -> None:
    parts = (make_pings(PEERS), ping_step, (TURN,), make_network(PEERS), 1)
    for make in (EventEngine, make_window_engine):
        for row in (PEERS, -1):
            changes = make_transitions([3], [row], [True])
            expected = rf"^transitions\.rows is {row}, expected a row from 0 to 3"
            with pytest.raises(ScenarioError, match=expected):
                make(*parts, transitions=changes)
        for nodes in (PEERS - 1, PEERS + 1):
            links = make_link_conditions(nodes, latency=constant_latency(1))
            expected = rf"^links is {nodes}, expected those of 4 nodes"
            with pytest.raises(ScenarioError, match=expected):
                make(*parts, links=links)
        made = make(*parts, firing_ticks=lambda _: np.zeros((PEERS + 1, 1), np.int64))
        with pytest.raises(ScenarioError, match=r"^firing_ticks is 4, expected a row from 0 to 3"):
            made.run_cycle()
    latency = matrix_latency(np.ones((2, 2), np.int64), np.zeros(PEERS - 1, np.int64))
    with pytest.raises(ScenarioError, match=r"^latency is 3, expected sites of 4 nodes, or none"):
        make_link_conditions(PEERS, latency=latency)
