"""Timers of a broker, which its host sets."""

from __future__ import annotations

from attrs import define


@define(eq=False)
class Timer:
    """A timer: the token of its last setting, and when it is due, or None if it is not set."""

    token: int = 0
    at: int | None = None
