"""Limits, back-off and throttling: formulas, and settings that make no sense."""

from __future__ import annotations

import random
from typing import Any

import attrs
import pytest

from gossamer.node.transport.base.back_off import BackOff
from gossamer.node.transport.base.limits import Limits
from gossamer.node.transport.base.throttle import TokenBucket
from gossamer.protocol.kernel.errors import ConfigError


@pytest.mark.parametrize("name", [field.name for field in attrs.fields(Limits)])
@pytest.mark.parametrize("value", [-1, "1", True, 1 << 40])
def test_every_limit_names_itself_and_what_it_expects(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"^transport\.{name} is .*expected .* from") as caught:
        Limits(**{name: value})
    assert caught.value.value == value


def test_a_queue_holds_one_frame_at_least() -> None:
    with pytest.raises(ConfigError, match=r"transport\.queue_bytes is 4096, expected room"):
        Limits(frame_bytes=4096, queue_bytes=4096)
    assert Limits(frame_bytes=4096, queue_bytes=4100).queue_bytes == 4100


def test_a_peer_has_time_for_two_pings() -> None:
    with pytest.raises(ConfigError, match=r"transport\.silence_seconds is 9"):
        Limits(ping_seconds=5.0, silence_seconds=9.0)


def test_a_bucket_lets_a_burst_pass_and_then_keeps_the_rate() -> None:
    bucket = TokenBucket(rate=10, burst=20, now=0)
    assert bucket.charge(20, now=0) == 0
    assert bucket.charge(5, now=0) == 0.5
    assert bucket.charge(1, now=0.5) == pytest.approx(0.1)
    assert bucket.charge(20, now=100) == 0, "it fills up to the burst again"
    assert bucket.charge(1, now=100) == pytest.approx(0.1), "and not beyond"


def test_a_bucket_ignores_a_clock_that_goes_back() -> None:
    bucket = TokenBucket(rate=1, burst=1, now=100)
    assert bucket.charge(1, now=50) == 0
    assert bucket.charge(1, now=50) == 1


@pytest.mark.parametrize(
    ("failures", "longest"), [(1, 0.5), (2, 1), (3, 2), (7, 32), (8, 60), (9, 60), (10_000, 60)]
)
def test_back_off_doubles_up_to_its_longest(failures: int, longest: float) -> None:
    draws = random.Random(1)
    delays = [BackOff().delay_s(failures, draws) for _ in range(200)]
    assert max(delays) <= longest
    assert min(delays) >= longest / 2
    assert max(delays) - min(delays) > longest / 4, "peers do not come back in step"


@pytest.mark.parametrize(
    ("name", "value"), [("first_s", 0), ("factor", 0.5), ("longest_s", 0.1), ("jitter", 2)]
)
def test_an_impossible_back_off_is_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=r"transport\.back_off\."):
        BackOff(**{name: value})
