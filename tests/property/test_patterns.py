"""Groups, last values and the order of events, whatever order things come in."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from attrs import define, field

from gossamer.protocol.patterns import last_values
from gossamer.protocol.patterns.groups import Leader, Member, Report, Round
from gossamer.protocol.patterns.ordering import (
    LISTED,
    REMEMBERED,
    Fate,
    Listed,
    PublishedLog,
    Released,
    Sequencer,
)

EVER = 1 << 62  # the latest time that is believed
TRUE_S = 1_000_000.0
PATIENCE = 10.0


def value(key: int, time: int, *, size: int = 10, **more: object) -> last_values.LastValue:
    return last_values.LastValue(str(key).encode(), (time, time), bytes(size), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(50))
def test_peers_that_compare_come_to_agree_on_the_newest(seed: int) -> None:
    draws = random.Random(seed)
    peers = [last_values.LastValues() for _ in range(5)]
    told = {(a, b): 0 for a in range(5) for b in range(5)}
    newest: dict[int, last_values.LastValue] = {}
    for time in range(1, 200):
        key = draws.randrange(30)
        one = value(key, time, is_deleted=draws.random() < 0.1)
        if key not in newest or newest[key].stamp < one.stamp:
            newest[key] = one
        for peer in draws.sample(peers, 2):
            peer.put(one, EVER)
        a, b = draws.sample(range(5), 2)
        _compare(peers, told, a, b)
    for _ in range(3):
        for a, b in told:
            _compare(peers, told, a, b)
    expected = {str(key).encode(): one for key, one in newest.items()}
    for peer in peers:
        assert {key: peer.find(key) for key in expected} == expected
        alive = {one.key for one in peer.all(0.0)}
        assert alive == {one.key for one in newest.values() if not one.is_deleted}


def _compare(
    peers: list[last_values.LastValues], told: dict[tuple[int, int], int], a: int, b: int
) -> None:
    told[a, b], news = peers[a].since(told[a, b])
    for place in peers[b].missing([(one.key, one.stamp) for one in news], EVER):
        assert peers[b].put(news[place], EVER)


def test_older_values_change_nothing_and_expired_ones_are_forgotten() -> None:
    values = last_values.LastValues()
    assert values.put(value(1, 5), EVER)
    assert not values.put(value(1, 5), EVER)
    assert not values.put(value(1, 4, is_deleted=True), EVER)
    assert values.put(value(1, 6, is_deleted=True), EVER)
    assert (values.all(0.0), len(values)) == ([], 1)
    assert not values.put(value(1, 5), EVER)
    values = last_values.LastValues(limit=3, limit_bytes=100)
    values.put(value(1, 1, expires_at=50.0), EVER)
    values.put(value(2, 2), EVER)
    assert [one.key for one in values.all(49.0)] == [b"1", b"2"]
    assert [one.key for one in values.all(50.0)] == [b"2"]
    for key in (3, 4, 5):
        values.put(value(key, key), EVER)
    assert [one.key for one in values.all(50.0)] == [b"3", b"4", b"5"]
    values.put(value(3, 9, size=85), EVER)
    assert [one.key for one in values.all(50.0)] == [b"5", b"3"]


def test_many_are_compared_in_pieces() -> None:
    values = last_values.LastValues()
    for key in range(last_values.COMPARED + 10):
        values.put(value(key, key + 1), EVER)
    serial, first = values.since(0)
    _, rest = values.since(serial)
    assert (len(first), len(rest)) == (last_values.COMPARED, 10)
    pieces = list(
        last_values.chunks([value(1, 1, size=60), value(2, 2, size=60), value(3, 3, size=500)], 100)
    )
    assert [len(piece) for piece in pieces] == [1, 1, 1]


def test_a_value_of_a_clock_that_was_ahead_gives_way() -> None:
    values = last_values.LastValues()
    assert values.put(value(1, 7200), 7300)
    assert values.put(value(1, 50), latest=100)
    assert values.missing([(b"1", (60, 60)), (b"1", (101, 1)), (b"1", (40, 40))], 100) == [0]


def clock_of(*ahead_s: float) -> last_values.ClusterClock:
    """A peer's, whose neighbours' clocks are ahead of the true time by so much."""
    clock = last_values.ClusterClock()
    for key, one in enumerate(ahead_s):
        clock.heard(key, TRUE_S + one, 0.0)
    return clock


@pytest.mark.parametrize(
    ("own_s", "others_s", "skew_s", "believed_s"),
    [
        (0.0, (), 0.0, 0.0),
        (7200.0, (), 0.0, 7200.0),
        (7200.0, (0.0, 1.0), 7199.0, 1.0),
        (7200.0, (0.0, 7200.0), 0.0, 7200.0),
        (4.0, (0.0, -1.0), 0.0, 4.0),
        (-7200.0, (0.0, 1.0), -7200.0, -7200.0),
    ],
)
def test_a_clock_ahead_of_all_others_is_not_believed(
    own_s: float, others_s: tuple[float, ...], skew_s: float, believed_s: float
) -> None:
    clock = clock_of(*others_s)
    for steady_s in (0.0, 500.0):
        now_s = TRUE_S + own_s + steady_s
        assert clock.skew_s(now_s, steady_s) == pytest.approx(skew_s)
        assert clock.believed_s(now_s, steady_s) == pytest.approx(TRUE_S + steady_s + believed_s)
    clock.keep(frozenset())
    assert clock.skew_s(TRUE_S + own_s, 0.0) == 0.0


def test_times_are_later_than_those_seen_that_can_be_believed() -> None:
    clock = clock_of(0.0, 0.0, 1e9)
    behind_s = TRUE_S - 3600.0
    clock.see(TRUE_S + 3.0, behind_s, 0.0)
    assert clock.believed_s(behind_s, 0.0) == TRUE_S + 3.0 + last_values.STEP_S
    # A neighbour that says that it is far later makes nothing of then believed.
    clock.see(TRUE_S + 1e9, behind_s, 0.0)
    clock.see(TRUE_S + last_values.BOUND_S + 0.1, behind_s, 0.0)
    assert clock.believed_s(behind_s, 0.0) == TRUE_S + 3.0 + last_values.STEP_S
    alone = last_values.ClusterClock()
    alone.see(TRUE_S + 7200.0, TRUE_S + 7200.0, 0.0)
    assert alone.believed_s(TRUE_S, 0.0) == TRUE_S, "what was ahead is not seen for ever"


def wants(content: int) -> bool:
    return content % 3 != 0


@pytest.mark.parametrize("seed", range(150))
def test_acknowledged_events_come_in_order_and_none_is_lost(seed: int) -> None:
    """Some are given up, and may come or not; answers are old when they come."""
    draws = random.Random(seed)
    log: PublishedLog[int] = PublishedLog(0)
    order: Sequencer[int] = Sequencer(0, PATIENCE)
    got: list[Released[int]] = []
    under_way: list[int] = []
    unsettled: list[int] = []
    answers: list[tuple[int, tuple[int, int, list[Listed]]]] = []
    given_up: set[int] = set()
    now = 0.0
    for step in range(400):
        now += draws.choice([0.0, 0.01, 0.3])
        what = draws.random()
        if what < 0.3 and step < 300:
            time = log.reserve(int(now * 1e6))
            log.note(time, time, time)
            unsettled.append(time)
            if wants(time):
                under_way.append(time)
        elif what < 0.45 and unsettled:
            time = unsettled.pop(draws.randrange(len(unsettled)))
            if draws.random() < 0.1:
                given_up.add(time)
                if draws.random() < 0.5 and time in under_way:
                    under_way.remove(time)
            else:
                log.settle(time)
            log.give_up(time)
        elif what < 0.7 and under_way:
            time = under_way.pop(draws.randrange(len(under_way)))
            got += order.take(time, time, now, EVER)
        elif what < 0.85:
            asked = order.question(now)
            if asked is not None:
                answers.append((asked[0], log.between(*asked, wants)))
        elif answers:
            after, (since, until, listed) = answers.pop(0)
            got += order.answer(after, (since, until), listed, now)
        # What is acknowledged comes within the patience, whatever this play draws.
        for time in [one for one in under_way if now - one / 1e6 > PATIENCE / 3]:
            if time not in given_up:
                under_way.remove(time)
                got += order.take(time, time, now, EVER)
    for time in unsettled:
        log.settle(time)
    for time in under_way:
        got += order.take(time, time, now, EVER)
    for _ in range(60):
        now += 1.0
        asked = order.question(now)
        if asked is not None:
            since, until, listed = log.between(*asked, wants)
            got += order.answer(asked[0], (since, until), listed, now)
        got += order.release(now)
    assert order.waiting == 0
    in_order = [one.item for one in got if not one.late]
    assert in_order == sorted(in_order)
    assert {one.item for one in got if one.late} <= given_up
    assert len({one.item for one in got}) == len(got)


def test_publishers_that_are_silent_or_have_forgotten_are_waited_for() -> None:
    order: Sequencer[str] = Sequencer(0, PATIENCE)
    assert order.take(200, "b", now=0.0, latest=EVER) == []
    assert order.take(100, "a", now=1.0, latest=EVER) == []
    assert order.question(1.0) == (0, 200)
    assert order.release(9.0) == []
    assert order.release(11.5) == [Released("a"), Released("b")]
    assert order.take(150, "between", now=12.0, latest=EVER) == [Released("between", late=True)]
    order = Sequencer(0, PATIENCE)
    order.take(100, "a", now=0.0, latest=EVER)
    assert order.answer(0, (0, 100), [], now=0.1) == [Released("a")]
    order.take(300, "c", now=1.0, latest=EVER)
    # It was started anew at 250, and knows nothing of what was between.
    assert order.answer(100, (250, 300), [], now=1.1) == []
    assert order.take(200, "b", now=2.0, latest=EVER) == []
    assert order.release(11.2) == [Released("b"), Released("c")]


def test_times_begin_anew_where_a_clock_was_ahead() -> None:
    log: PublishedLog[int] = PublishedLog(0)
    order: Sequencer[str] = Sequencer(0, PATIENCE)
    hour = 3_600_000_000
    ahead, first, second = log.reserve(hour), log.reserve(1000), log.reserve(999)
    assert (ahead, first, second) == (hour, 1001, 1002)
    assert log.between(0, hour, lambda _: True)[0] == 1000, "of before, nothing is known"
    order.take(ahead, "ahead", now=0.0, latest=2 * hour)
    order.answer(0, (0, ahead), [], now=0.0)
    assert order.take(second, "second", now=1.0, latest=hour // 2) == []
    assert order.take(first, "first", now=1.0, latest=hour // 2) == []
    released = order.answer(first - 1, (first - 1, second), [], now=1.0)
    assert released == [Released("first"), Released("second")]


def test_what_is_pending_is_waited_for_and_what_does_not_come_is_given_up() -> None:
    order: Sequencer[str] = Sequencer(0, PATIENCE)
    order.take(200, "b", now=0.0, latest=EVER)
    assert order.answer(0, (0, 200), [Listed(100, 1, Fate.PENDING)], now=0.1) == []
    assert order.release(60.0) == []
    assert order.question(60.0) == (0, 200)
    assert order.answer(0, (0, 200), [Listed(100, 1, Fate.GIVEN_UP)], now=60.1) == [Released("b")]
    order = Sequencer(0, PATIENCE, is_known={2}.__contains__)
    order.take(200, "b", now=0.0, latest=EVER)
    listed = [Listed(100, 1, Fate.ACKNOWLEDGED), Listed(120, 2, Fate.ACKNOWLEDGED)]
    assert order.answer(0, (0, 200), listed, now=0.1) == []
    assert order.release(10.0) == []
    assert order.release(10.2) == [Released("b")]


def test_times_grow_and_what_is_long_ago_is_forgotten() -> None:
    log: PublishedLog[int] = PublishedLog(1000)
    times = [log.reserve(now) for now in (5, 5000, 4000)]
    assert times == [1001, 5000, 5001]
    pending = [Listed(time, 0, Fate.PENDING) for time in times]
    assert log.between(0, 9000, wants) == (1000, 9000, pending)
    for time in times:
        log.note(time, time, 3)
    assert log.between(0, 9000, wants) == (1000, 9000, [])
    for _ in range(REMEMBERED):
        log.note(log.reserve(0), 1, 1)
    assert log.since > 5001
    since, until, listed = log.between(0, 1 << 40, wants)
    assert (since, until, len(listed)) == (log.since, listed[-1].time, LISTED)


@define(eq=False)
class Peer:
    """A peer of the group, and what is on its way to it."""

    member: Member
    leader: Leader | None = None
    to_arrive: list[int] = field(factory=list)
    has_crashed: bool = False

    @property
    def key(self) -> int:
        return self.member.key


@define(eq=False)
class Play:
    """A group in which anything happens at any time.

    Attributes:
        done: how often each event was done.
        excused: events that a worker had whose peer crashed.
    """

    draws: random.Random
    peers: dict[int, Peer] = field(factory=dict)
    rounds: list[tuple[int, int, Leader, Round]] = field(factory=list)
    reports: list[tuple[int, int, Leader, Round, Report]] = field(factory=list)
    done: Counter[int] = field(factory=Counter)
    excused: set[int] = field(factory=set)
    published: int = 0

    @classmethod
    def begin(cls, seed: int) -> Play:
        draws = random.Random(seed)
        peers = {key: Peer(Member(key)) for key in range(1, draws.randint(2, 5) + 1)}
        play = cls(draws, peers)
        leader = play.lead(1)
        for key in play.peers:
            leader.add(key)
        return play

    def up(self) -> list[Peer]:
        return [peer for peer in self.peers.values() if not peer.has_crashed]

    def publish(self) -> None:
        self.published += 1
        for peer in self.up():
            peer.to_arrive.append(self.published)

    def arrive(self, peer: Peer) -> None:
        if peer.to_arrive:
            event = peer.to_arrive.pop(self.draws.randrange(len(peer.to_arrive)))
            if peer.member.arrive(event) and peer.leader is not None:
                peer.leader.arrive(event)

    def lead(self, key: int) -> Leader:
        """A peer takes the lead, whether or not somebody has it."""
        peer = self.peers[key]
        epoch = (peer.member.epoch[0] + 1, key)
        leader = Leader(epoch, peer.member.view, peer.member.pending, peer.member.is_done)
        peer.leader = leader
        self.talk(peer, key)
        self.deliver_round(len(self.rounds) - 1)
        self.deliver_report(len(self.reports) - 1)
        return leader

    def talk(self, peer: Peer, key: int) -> None:
        if peer.leader is not None and key in peer.leader.view:
            under_way = [*self.rounds, *self.reports]
            if not any(one[2] is peer.leader and one[1] == key for one in under_way):
                self.rounds.append((peer.key, key, peer.leader, peer.leader.round_for(key)))

    def deliver_round(self, place: int) -> None:
        source, key, leader, told = self.rounds.pop(place)
        peer = self.peers[key]
        if peer.has_crashed:
            leader.remove(key)
            return
        report, assigned, _ = peer.member.take(told, max(0, 3 - len(peer.member.held)))
        for event in assigned:
            holders = [one.key for one in self.up() if event in one.member.held]
            if event not in self.excused:
                assert holders == [key], f"event {event} is at the workers of {holders}"
                assert not self.done[event], f"event {event} is given away though it is done"
        self.reports.append((source, key, leader, told, report))

    def deliver_report(self, place: int) -> None:
        source, key, leader, told, report = self.reports.pop(place)
        peer = self.peers[source]
        if peer.leader is not leader or peer.has_crashed:
            return
        news, unknown = leader.take(key, told, report, 0.0)
        peer.member.learn(news)
        peer.to_arrive += [event for event in unknown if event not in peer.to_arrive]
        if leader.deposed:
            peer.leader = None
        else:
            leader.assign(0.0)

    def finish(self, peer: Peer) -> None:
        if peer.member.held:
            event = self.draws.choice(sorted(peer.member.held))
            self.done[event] += peer.member.finish(event)

    def give_back(self, peer: Peer) -> None:
        if peer.member.held:
            peer.member.give_back(self.draws.choice(sorted(peer.member.held)))

    def crash(self, peer: Peer) -> None:
        """It never comes back; what its workers had, and had done unnoticed, may come again."""
        if len(self.up()) > 1:
            peer.has_crashed, peer.leader = True, None
            self.excused |= peer.member.held
            self.excused |= {event for event in self.done if peer.member.is_done(event)}

    def step(self) -> None:
        draws = self.draws
        what, peer = draws.random(), draws.choice(self.up())
        if what < 0.1:
            self.publish()
        elif what < 0.3:
            self.arrive(peer)
        elif what < 0.5:
            self.talk(peer, draws.choice(list(self.peers)))
        elif what < 0.65 and self.rounds:
            self.deliver_round(draws.randrange(len(self.rounds)))
        elif what < 0.8 and self.reports:
            self.deliver_report(draws.randrange(len(self.reports)))
        elif what < 0.95:
            self.finish(peer)
        elif what < 0.98:
            self.give_back(peer)
        elif peer.leader is None and peer.member.epoch > (0, 0):
            self.lead(peer.key)  # it has heard of the others

    def settle(self) -> None:
        leader = max(self.up(), key=lambda peer: peer.member.epoch)
        for _ in range(400):
            for peer in self.up():
                while peer.to_arrive:
                    self.arrive(peer)
            if leader.leader is None:
                self.lead(leader.key)
            for key in self.peers:
                self.talk(leader, key)
            while self.rounds:
                self.deliver_round(0)
            while self.reports:
                self.deliver_report(0)
            for peer in self.up():
                self.finish(peer)
            if all(not peer.member.pending for peer in self.up()):
                return
        pending = {peer.key: list(peer.member.pending)[:5] for peer in self.up()}
        raise AssertionError(f"not everything is done: {pending}")


@pytest.mark.parametrize("crashes", [False, True], ids=["", "crashes"])
@pytest.mark.parametrize("seed", range(40))
def test_each_event_is_done_once_but_what_a_crashed_peer_had(seed: int, crashes: bool) -> None:
    play = Play.begin(seed)
    for number in range(600):
        play.step()
        if crashes and number % 200 == 199:
            play.crash(play.draws.choice(play.up()))
    play.settle()
    assert play.published > 0
    once = Counter(range(1, play.published + 1))
    assert once <= play.done
    assert (play.done - once).keys() <= play.excused


def test_a_leader_that_is_not_answered_assigns_nothing() -> None:
    leader = Leader((1, 1), [1, 2], [7], lambda _: False)
    member = Member(1)
    told = leader.round_for(1)
    report, _, _ = member.take(told, room=5)
    leader.take(1, told, report, now=10.0)
    assert leader.assign(10.0) == set()  # the other one has said nothing yet
    leader.remove(2)
    assert leader.assign(14.5) == set()  # its own answer is too old
    told = leader.round_for(1)
    leader.take(1, told, member.take(told, room=5)[0], now=15.0)
    assert leader.assign(15.0, lambda event: event != 7) == set()
    assert leader.assign(15.0) == {1}
    assert leader.round_for(1).assigned == (7,)


def test_what_a_full_peer_gives_back_goes_to_another_one() -> None:
    """Its other workers are busy: the same round again must not bring the event back to it."""
    full, free = Member(1), Member(2)
    rooms = {1: 1, 2: 0}
    leader = Leader((1, 1), [1, 2], [7], full.is_done)

    def talk(member: Member) -> list[int]:
        told = leader.round_for(member.key)
        report, assigned, _ = member.take(told, rooms[member.key])
        leader.take(member.key, told, report, 0.0)
        leader.assign(0.0)
        return assigned

    for member in (full, free):
        member.arrive(7)
        talk(member)
    assert talk(full) == [7]
    full.give_back(7)
    rooms |= {1: 0, 2: 1}
    talk(free)
    assert talk(full) == []
    assert talk(free) == [7]
