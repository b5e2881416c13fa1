"""When a peer asks for what it missed."""

from __future__ import annotations

import math
from collections.abc import Callable

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from gossamer.node.errors import NoAnswerError
from gossamer.node.peer import catch_up
from gossamer.node.security.encoding import decode, encode

ROUND_S, SILENCE_S, REPLAY_S, KEPT_S = 0.5, 20.0, 30.0, 3600.0
QUIET_ROUNDS = 8
# Since a connection that is found to be broken was alive: a frame may have come just after a look.
DEAD_S = 24.5
MERGING_S = catch_up.ROUNDS_TO_MERGE * ROUND_S


@attrs.define(eq=False)
class Asked:
    """A runtime that notes when, and for how many seconds back, it was asked to catch up."""

    heard_back: trio.Event = attrs.field(init=False)
    calls: list[tuple[float, float]] = attrs.field(factory=list)
    losses: list[int] = attrs.field(factory=list)
    skipped: list[int] = attrs.field(factory=list)
    answers: bool = True
    silent: list[int] = attrs.field(factory=list)
    linked: list[int] = attrs.field(factory=list)
    remembered: float = math.inf
    heard: dict[int, float] = attrs.field(factory=dict)
    on_caught_up: Callable[[], None] = lambda: None
    on_round: Callable[[], None] = lambda: None

    def __attrs_post_init__(self) -> None:
        self.heard_back = trio.Event()
        self.heard_back.set()

    def catch_up(self, rounds: int) -> None:
        self.calls.append((trio.current_time(), (rounds - catch_up.MARGIN_ROUNDS) * ROUND_S))
        if self.answers:
            self.on_caught_up()

    def skip_rounds(self, rounds: int) -> None:
        self.skipped.append(rounds)

    def silent_peers(self, rounds: int) -> list[int]:
        assert rounds == QUIET_ROUNDS
        return self.silent

    def remembered_rounds(self) -> float:
        return self.remembered

    def linked_peers(self) -> list[int]:
        return self.linked

    def report_loss(self, key: int) -> None:
        self.losses.append(key)


@attrs.define(eq=False)
class Told:
    """The messages of a peer: whom it told of what service, and how many seconds.

    Answers take so long as ``takes_s`` says; they say what the ``clock`` of who was told showed
    in the middle of that. Without one there are none.
    """

    connected: dict[int, float] = attrs.field(factory=dict)
    told: list[tuple[int, str, object]] = attrs.field(factory=list)
    services: dict[str, Callable[[int, bytes], bytes]] = attrs.field(factory=dict)
    takes_s: list[float] = attrs.field(factory=list)
    clock: Callable[[], float] | None = None

    def offer(self, name: str, service: Callable[[int, bytes], bytes]) -> None:
        self.services[name] = service

    async def ask(
        self, key: int, _addresses: object, service: str, body: bytes, _patience_s: float
    ) -> bytes:
        self.told.append((key, service, decode(body)))
        takes_s = self.takes_s.pop(0) if self.takes_s else 0
        await trio.sleep(takes_s / 2)
        shown = self.clock and self.clock()
        await trio.sleep(takes_s / 2)
        if shown is None:
            raise NoAnswerError(key, "it is of an older version")
        return encode(math.floor(shown * 1000))


def clock_ms() -> int:
    return math.floor(trio.current_time() * 1000)


class Desk:
    """What notices that a peer was away, and around it a runtime and messages that take notes."""

    def __init__(self) -> None:
        self.asked, self.messages = Asked(), Told()
        self.catch_up = catch_up.CatchUp(
            self.asked,  # type: ignore[arg-type]
            self.asked.heard.get,
            round_s=ROUND_S,
            quiet_rounds=QUIET_ROUNDS,
            silence_s=SILENCE_S,
            replay_s=REPLAY_S,
            kept_s=KEPT_S,
        )
        self.catch_up.listen(self.messages)  # type: ignore[arg-type]


@pytest.fixture
def desk(nursery: trio.Nursery) -> Desk:
    made = Desk()
    nursery.start_soon(made.catch_up.run)
    return made


async def test_a_peer_that_did_not_run_asks_once_it_has_its_place(desk: Desk) -> None:
    desk.asked.heard_back = trio.Event()
    desk.catch_up.was_stopped(3600)
    await trio.sleep(100)
    assert desk.asked.calls == []
    desk.asked.heard_back.set()
    await trio.sleep(100)
    settled = 100 + catch_up.ROUNDS_TO_START * ROUND_S
    assert desk.asked.calls == [(settled, 3600 + settled)]


async def test_who_was_out_of_reach_for_long_is_reason_to_ask_twice(desk: Desk) -> None:
    """Once the parts have merged, and once more for what was published meanwhile."""
    desk.catch_up.lost(5, trio.current_time() - DEAD_S)
    await trio.sleep(60)
    desk.catch_up.found(5)
    await trio.sleep(100)
    first, second = 60 + MERGING_S, 60 + 2 * MERGING_S
    assert desk.asked.calls == [(first, first + DEAD_S), (second, 2 * MERGING_S)]
    assert desk.asked.losses == [5]


@pytest.mark.parametrize("gap_s", [1.0, REPLAY_S - DEAD_S])
async def test_short_breaks_are_no_reason_to_ask(desk: Desk, gap_s: float) -> None:
    desk.catch_up.lost(5, trio.current_time() - DEAD_S)
    await trio.sleep(gap_s)
    desk.catch_up.found(5)
    desk.catch_up.found(6)
    desk.catch_up.was_paused(gap_s)
    await trio.sleep(100)
    assert desk.asked.calls == []


async def test_a_paused_process_asks_for_the_pause_and_counts_rounds_held_up(desk: Desk) -> None:
    for pause_s in (0.6 * ROUND_S, 1.9 * ROUND_S, 5 * ROUND_S):
        desk.catch_up.was_paused(pause_s)
    assert desk.asked.skipped == [1, 5]
    await trio.sleep(50)
    assert desk.asked.calls == []
    desk.catch_up.was_paused(30)
    await trio.sleep(100)
    assert desk.asked.calls[0] == (50 + MERGING_S, 30 + MERGING_S)
    assert len(desk.asked.calls) == 2


async def test_many_who_come_back_at_once_make_one_question(desk: Desk) -> None:
    for key in range(10):
        desk.catch_up.lost(key, trio.current_time() - DEAD_S)
        await trio.sleep(1)
    await trio.sleep(60)
    for key in range(10):
        desk.catch_up.found(key)
        await trio.sleep(0.1)
    await trio.sleep(100)
    assert len(desk.asked.calls) == 2
    assert desk.asked.calls[0][0] - desk.asked.calls[0][1] == -DEAD_S


async def test_a_peer_is_not_whole_until_it_has_everything(desk: Desk) -> None:
    """What it knows by then has to be asked for again should it fail meanwhile."""
    whole = [desk.catch_up.is_whole]
    desk.asked.answers = False
    desk.catch_up.was_stopped(3600)
    whole.append(desk.catch_up.is_whole)
    await trio.sleep(100)
    assert len(desk.asked.calls) == 1
    whole.append(desk.catch_up.is_whole)
    desk.asked.on_caught_up()
    await trio.sleep(1)
    assert [*whole, desk.catch_up.is_whole] == [True, False, False, True]


async def test_what_peers_out_of_reach_may_have_is_missing_until_they_are_back(desk: Desk) -> None:
    assert desk.catch_up.missing_s == 0
    desk.catch_up.lost(5, trio.current_time() - DEAD_S)
    await trio.sleep(10)
    desk.catch_up.lost(6, trio.current_time())
    assert desk.catch_up.missing_s == DEAD_S + 10
    desk.catch_up.found(5)
    await trio.sleep(5)
    assert desk.catch_up.missing_s == 5
    await trio.sleep(KEPT_S)
    assert desk.catch_up.missing_s == 0, "nobody keeps that"


async def rounds(desk: Desk, seconds: float) -> None:
    for _ in range(int(seconds / ROUND_S)):
        await trio.sleep(ROUND_S)
        desk.asked.on_round()


@pytest.mark.parametrize("is_connected", [True, False])
async def test_long_silence_is_reason_to_ask_and_tell(desk: Desk, is_connected: bool) -> None:
    desk.messages.connected = {5: 0.0, 6: 0.0}
    if is_connected:
        desk.asked.heard[5] = trio.current_time()
    await rounds(desk, QUIET_ROUNDS * ROUND_S)
    desk.asked.silent = [5]
    await rounds(desk, 10)
    assert desk.catch_up.missing_s == QUIET_ROUNDS * ROUND_S + 10 - (0 if is_connected else ROUND_S)
    desk.asked.silent = []
    if is_connected:
        desk.asked.heard[5] = trio.current_time()
    else:
        desk.asked.linked = [5]
    await rounds(desk, 100)
    assert len(desk.asked.calls) == 2
    began = desk.asked.calls[0][0] - desk.asked.calls[0][1]
    assert began == (0 if is_connected else ROUND_S)
    assert sorted(told[:2] for told in desk.messages.told) == [(5, "apart"), (6, "apart")]
    assert desk.catch_up.missing_s == 0


async def test_a_connection_that_another_has_replaced_is_no_reason_to_ask(desk: Desk) -> None:
    """Two dialled each other at once; what was under way on the one is offered anew.

    It is reason to ask where the one that was replaced had been dead for long.
    """
    desk.catch_up.found(5)
    desk.catch_up.lost(5, trio.current_time(), replaced=True)
    assert desk.asked.losses == [5]
    await trio.sleep(1000)
    assert desk.catch_up.missing_s == 0
    desk.catch_up.found(5)
    await trio.sleep(100)
    assert desk.asked.calls == []
    desk.catch_up.lost(5, trio.current_time() - REPLAY_S - 1, replaced=True)
    await trio.sleep(100)
    assert len(desk.asked.calls) == 2


async def test_who_counted_as_failed_for_a_moment_is_no_reason_to_ask(desk: Desk) -> None:
    desk.asked.heard[5] = trio.current_time()
    desk.asked.silent = [5]
    await rounds(desk, 1)
    desk.asked.heard[5] = trio.current_time()
    desk.asked.silent, desk.asked.linked = [], [5]
    await rounds(desk, 100)
    assert desk.asked.calls == []
    assert desk.catch_up.missing_s == 0


async def test_what_a_peer_sent_before_it_was_cut_off_does_not_end_its_silence(desk: Desk) -> None:
    desk.asked.heard[5] = trio.current_time()
    desk.asked.silent = [5]
    await rounds(desk, 1)
    desk.asked.heard[5] = trio.current_time()
    await rounds(desk, 12)
    assert desk.asked.calls == []
    desk.asked.heard[5] = trio.current_time()
    await rounds(desk, 100)
    assert desk.asked.calls[0][0] - desk.asked.calls[0][1] == 1


@pytest.mark.parametrize("counts_as_failed_first", [True, False])
async def test_who_stopped_is_no_reason_to_ask(desk: Desk, counts_as_failed_first: bool) -> None:
    desk.asked.silent = [5]
    if counts_as_failed_first:
        desk.asked.on_round()
    desk.catch_up.stopped(5)
    await rounds(desk, 20)
    desk.catch_up.found(5)
    desk.asked.silent, desk.asked.linked = [], [5]
    await rounds(desk, 100)
    assert desk.asked.calls == []


async def test_who_is_connected_anew_after_a_silence_is_reason_to_ask(desk: Desk) -> None:
    """As where connections to another part are reset at once."""
    desk.asked.silent = [5]
    await rounds(desk, 10)
    desk.catch_up.found(5)
    await rounds(desk, 100)
    assert len(desk.asked.calls) == 2


@pytest.mark.parametrize("lasts", [False, True])
async def test_who_was_not_sent_all_is_told_if_it_may_be_forgotten(desk: Desk, lasts: bool) -> None:
    began = trio.current_time()
    await trio.sleep(REPLAY_S / 2 - 1)
    desk.catch_up.was_not_sent(5, began, lasts=lasts)
    await wait_all_tasks_blocked()
    assert desk.messages.told == []
    await trio.sleep(1)
    desk.catch_up.was_not_sent(5, began, lasts=lasts)
    await wait_all_tasks_blocked()
    assert desk.messages.told == [(5, "not sent", REPLAY_S / 2)]
    assert desk.asked.losses == ([] if lasts else [5, 5]), "it is offered what is remembered"


@pytest.mark.parametrize("lasts", [False, True])
async def test_who_was_not_sent_what_is_forgotten_already_is_told(desk: Desk, lasts: bool) -> None:
    """More events have passed meanwhile than there is memory for."""
    began = trio.current_time()
    await trio.sleep(6)
    desk.asked.remembered = 6 / ROUND_S
    desk.catch_up.was_not_sent(5, began, lasts=lasts)
    await wait_all_tasks_blocked()
    assert desk.messages.told == []
    desk.asked.remembered -= 1
    desk.catch_up.was_not_sent(5, began, lasts=lasts)
    await wait_all_tasks_blocked()
    assert desk.messages.told == [(5, "not sent", 6)]


@pytest.mark.parametrize("forgotten", [False, True])
async def test_who_is_back_is_told_where_events_are_forgotten(desk: Desk, forgotten: bool) -> None:
    desk.catch_up.lost(5, trio.current_time() - 4)
    await trio.sleep(2)
    desk.asked.remembered = (5 if forgotten else 6) / ROUND_S
    desk.catch_up.found(5)
    desk.catch_up.found(6)
    await wait_all_tasks_blocked()
    assert desk.messages.told == ([(5, "not sent", 6)] if forgotten else [])
    assert desk.asked.calls == []


async def test_who_hears_that_it_was_not_sent_all_asks_at_once(desk: Desk) -> None:
    hear = desk.messages.services["not sent"]
    await trio.sleep(1000)
    for seconds in (20, 1 << 60):
        assert decode(hear(5, encode(seconds))) == clock_ms()
        assert not desk.catch_up.is_whole
        await wait_all_tasks_blocked()
        assert desk.catch_up.is_whole
    hear(5, encode([clock_ms() - 30_000]))
    await wait_all_tasks_blocked()
    asked_for = [(at, round(seconds, 1)) for at, seconds in desk.asked.calls]
    assert asked_for == [(1000, 20), (1000, 4 * REPLAY_S), (1000, 30)]


async def test_who_is_told_late_is_told_again_and_who_is_told_soon_is_not(desk: Desk) -> None:
    """What it heard is too short by how long it took."""
    await trio.sleep(20)
    for takes_s, expected in (([2 * ROUND_S], [20]), ([12.0, 2.0, 1.0], [20, 32, 34])):
        desk.messages.takes_s = takes_s
        desk.messages.told.clear()
        desk.catch_up.was_not_sent(5, trio.current_time() - 20, lasts=True)
        await trio.sleep(100)
        assert desk.messages.told == [(5, "not sent", seconds) for seconds in expected]
    desk.messages.told.clear()
    desk.messages.takes_s = [12.0] * 9
    desk.catch_up.was_not_sent(5, trio.current_time() - 20, lasts=True)
    await trio.sleep(100)
    assert len(desk.messages.told) == catch_up.MOST_TELLS


async def test_who_is_told_late_is_told_by_its_own_clock_since_when(desk: Desk) -> None:
    """However long that message takes, and whether or not the first of them is answered."""
    ahead = 12_345.0
    desk.messages.clock = lambda: trio.current_time() + ahead
    desk.messages.takes_s = [12.0, 9.0]
    since = trio.current_time() + 5
    await trio.sleep(25)
    desk.catch_up.was_not_sent(5, since, lasts=True)
    await trio.sleep(100)
    (_, _, first), (_, _, second) = desk.messages.told
    assert first == 20
    assert isinstance(second, list)
    late_ms = (since + ahead) * 1000 - second[0]
    # Earlier by how long the answer took to come back, never later.
    assert 0 <= late_ms < 6_010


@pytest.mark.parametrize("service", ["apart", "not sent"])
async def test_what_is_no_number_of_seconds_is_refused(desk: Desk, service: str) -> None:
    for told in (-1, "long", True, [clock_ms() + 1], [], [True], [1, 2], [-1.5]):
        with pytest.raises(ValueError, match="no number of seconds"):
            desk.messages.services[service](5, encode(told))
    await trio.sleep(1000)
    assert desk.asked.calls == []


async def test_another_was_apart_for_no_longer_than_that_can_be(desk: Desk) -> None:
    hear = desk.messages.services["apart"]
    await trio.sleep(1000)
    assert decode(hear(5, encode(1 << 60))) == clock_ms()
    await trio.sleep(100)
    assert desk.asked.calls[0] == (1000 + MERGING_S, SILENCE_S + MERGING_S)
    desk.asked.calls.clear()
    hear(5, encode([clock_ms() - 1_000_000]))
    await trio.sleep(100)
    assert desk.asked.calls[0][1] == 2 * SILENCE_S + MERGING_S
