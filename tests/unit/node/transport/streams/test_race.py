"""Dialling several addresses: the first success wins, and nothing else is left behind."""

from __future__ import annotations

import pytest
import trio

from gossamer.node.errors import HandshakeFailed
from gossamer.node.transport.base.base import Address
from gossamer.node.transport.streams.race import AllFailedError, describe, first_success, interleave
from gossamer.protocol.kernel.errors import ConfigError


class Ways:
    """Attempts that succeed or fail after a while; what became of each is noted."""

    def __init__(self, **outcomes: tuple[float, Exception | None]) -> None:
        self.outcomes = outcomes
        self.started: dict[str, float] = {}
        self.cancelled: list[str] = []
        self.discarded: list[str] = []

    async def attempt(self, way: str) -> str:
        self.started[way] = trio.current_time()
        seconds, error = self.outcomes[way]
        try:
            await trio.sleep(seconds)
        except trio.Cancelled:
            self.cancelled.append(way)
            raise
        if error is not None:
            raise error
        return way

    async def discard(self, way: str) -> None:
        self.discarded.append(way)


async def race(ways: Ways) -> str:
    return await first_success(list(ways.outcomes), ways.attempt, ways.discard, 0.25)


REFUSED = OSError(111, "Connection refused")


@pytest.mark.parametrize(
    ("outcomes", "winner", "after_s", "cancelled"),
    [
        # A dead first address costs a quarter of a second.
        ({"dead": (10_000, None), "alive": (0.01, None)}, "alive", 0.26, ["dead"]),
        # A failure starts the next at once.
        ({"refused": (0.01, REFUSED), "alive": (0.01, None)}, "alive", 0.02, []),
        # A slow first may still win.
        ({"slow": (0.3, None), "slower": (0.3, None)}, "slow", 0.3, ["slower"]),
    ],
)
async def test_the_first_success_wins_and_others_begin_soon(
    outcomes: dict[str, tuple[float, Exception | None]],
    winner: str,
    after_s: float,
    cancelled: list[str],
) -> None:
    ways = Ways(**outcomes)
    assert await race(ways) == winner
    assert trio.current_time() == pytest.approx(after_s)
    assert ways.cancelled == cancelled


async def test_all_failures_are_told_in_order() -> None:
    ways = Ways(a=(0.1, OSError(113, "No route to host")), b=(0.1, HandshakeFailed("silence")))
    with pytest.raises(AllFailedError) as caught:
        await race(ways)
    assert caught.value.failures == (
        ("a", "no route to host"),
        ("b", "the handshake failed: silence"),
    )
    with pytest.raises(AllFailedError):
        await race(Ways())
    assert trio.current_time() == pytest.approx(0.2), "where there is no way it fails at once"


async def test_the_second_of_two_winners_is_discarded() -> None:
    both, discarded, results = trio.Event(), list[int](), list[int]()

    async def attempt(way: int) -> int:
        with trio.CancelScope(shield=True):
            await both.wait()
        return way

    async def discard(way: int) -> None:
        discarded.append(way)

    async def run() -> None:
        results.append(await first_success([1, 2], attempt, discard, stagger_s=0))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()
        both.set()
    assert sorted(results + discarded) == [1, 2]
    assert len(results) == 1


def test_address_families_take_turns_and_errors_are_described_in_few_words() -> None:
    text = ["10.0.0.1:1", "10.0.0.2:1", "[fe80::1]:1", "10.0.0.1:1", "[fe80::2]:1", "[fe80::3]:1"]
    mixed = [str(address) for address in interleave([Address.parse(one) for one in text])]
    assert mixed == ["[fe80::1]:1", "10.0.0.1:1", "[fe80::2]:1", "10.0.0.2:1", "[fe80::3]:1"]
    assert describe(ConnectionRefusedError(111, "Connection refused")) == "connection refused"
    assert describe(OSError("odd")) == "odd"


LOOPBACK = ("127.0.0.1:1", "127.9.9.9:4000", "[::1]:4000", "localhost:1")
OTHERS = ("0.0.0.0:1", "[::]:1", "192.0.2.1:1", "example.org:1", "127.0.0.1.example.org:1")
OTHERS += ("[fe80::1%eth0]:1", "host.lan:0")


@pytest.mark.parametrize("text", [*LOOPBACK, *OTHERS])
def test_addresses_read_back_as_written_and_loopback_is_told_from_the_rest(text: str) -> None:
    assert str(Address.parse(text)) == text
    assert Address.parse(text).is_loopback == (text in LOOPBACK)


@pytest.mark.parametrize(
    "text", ["", "host", ":1", "::1:80", "[::1]", "host:", "host:-1", "host:65536", "h:1x", "[h]:1"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected host:port"):
        Address.parse(text)
