"""Try several ways at once, a little apart, and take the first that works (RFC 8305)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

import trio

from gossamer.node.errors import NodeError
from gossamer.node.transport.base.base import Address

W = TypeVar("W")
R = TypeVar("R")

# RFC 8305 recommends 250 ms between attempts.
STAGGER_SECONDS = 0.25


class AllFailedError(Exception):
    """No way worked; ``failures`` says why, in the order in which they were tried."""

    def __init__(self, failures: Sequence[tuple[object, str]]) -> None:
        self.failures = tuple(failures)
        super().__init__(f"{len(self.failures)} attempts failed")


class _Race(Generic[W, R]):
    def __init__(
        self, attempt: Callable[[W], Awaitable[R]], discard: Callable[[R], Awaitable[None]]
    ) -> None:
        self.attempt = attempt
        self.discard = discard
        self.winner: list[R] = []
        self.failures: list[tuple[object, str]] = []

    async def run(self, way: W, failed: trio.Event, scope: trio.CancelScope) -> None:
        try:
            result = await self.attempt(way)
        except (NodeError, OSError) as error:
            self.failures.append((way, describe(error)))
            failed.set()
            return
        if self.winner:
            await self.discard(result)
            return
        self.winner.append(result)
        scope.cancel()


async def first_success(
    ways: Sequence[W],
    attempt: Callable[[W], Awaitable[R]],
    discard: Callable[[R], Awaitable[None]],
    stagger_s: float = STAGGER_SECONDS,
) -> R:
    """The result of the first attempt that succeeds; the others are cancelled.

    The next one starts ``stagger_s`` after the last, or as soon as that has failed. Failures are
    `NodeError` and `OSError`; other exceptions pass through. Should two succeed at the same
    moment, one result goes to ``discard``.

    Raises:
        AllFailedError: every attempt failed.
    """
    race = _Race(attempt, discard)
    try:
        async with trio.open_nursery() as nursery:
            for way in ways:
                failed = trio.Event()
                nursery.start_soon(race.run, way, failed, nursery.cancel_scope)
                with trio.move_on_after(stagger_s):
                    await failed.wait()
    except BaseException:
        for result in race.winner:  # cancelled at the finishing line
            await discard(result)
        raise
    if not race.winner:
        raise AllFailedError(race.failures)
    return race.winner[0]


def interleave(addresses: Sequence[Address]) -> list[Address]:
    """``addresses`` without repetition, IPv6 and others in turn, each in its order."""
    unique = list(dict.fromkeys(addresses))
    sixes = [address for address in unique if ":" in address.host]
    others = [address for address in unique if ":" not in address.host]
    mixed: list[Address] = []
    while sixes or others:
        mixed += sixes[:1] + others[:1]
        del sixes[:1], others[:1]
    return mixed


def describe(error: Exception) -> str:
    """``error`` in few words."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
