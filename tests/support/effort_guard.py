"""What no unmarked test may exceed: processor time, and time in which it waits for a clock.

What exceeds its limit is named in the summary, and fails from three times the limit on: a busy
machine takes up to twice as long for the same, and no test is to fail for that. A test while
machine code came into the cache is not judged, since whoever comes first compiles. What makes a
fixture that tests share has a limit of its own.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest

from support.effort import FIRST_S, ProcessTree, Waits

DEAR: Final = "dear"


@attrs.frozen
class Limits:
    """In seconds: of the processor for a test and for a shared fixture, and of waiting."""

    test: float = 5.0
    fixture: float = 15.0
    waiting: float = 2.0
    first: float = FIRST_S


DEFAULT_LIMITS: Final = Limits()


class EffortGuard:
    """A plugin of pytest that names the unmarked tests which are dear, and fails the dearest.

    Args:
        root: the process whose tests are run.
        caches: the folder in whose folders machine code is kept.
        limits: what a test may take.
        busy: it fails from so many times as much on.
    """

    def __init__(
        self, root: int, caches: Path, *, limits: Limits = DEFAULT_LIMITS, busy: float = 3.0
    ) -> None:
        self._waits = Waits(ProcessTree(root))
        self._caches = caches
        self._limits = limits
        self._busy = busy
        self._own_s = self._waited_s = 0.0
        self._marked_s = 0.0  # what the tree had taken when it was last asked
        self._fixtures: dict[str, float] = {}
        self._cached: list[int] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        self._own_s, self._waited_s, self._fixtures = 0.0, 0.0, {}
        self._cached = self._times_of_caches()
        self._marked_s = self._waits.begin(self._limits.first).taken_s
        yield

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object]
    ) -> Generator[None, object, object]:
        """Let what makes a shared fixture have an account of its own."""
        if fixturedef.scope == "function":
            return (yield)
        self._own_s += self._mark()
        try:
            return (yield)
        finally:
            self._fixtures[fixturedef.argname] = self._mark(of_test=False)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Iterator[None]:
        if nextitem is None or nextitem.path != item.path:
            self._own_s += self._mark()  # before shared fixtures are removed
        yield
        self._own_s += self._mark()
        self._waits.end()
        if item.get_closest_marker("campaign") or self._compiled():
            return
        if found := self._exceeded(self._busy):
            pytest.fail(found, pytrace=False)
        if found := self._exceeded():
            item.user_properties.append((DEAR, found))

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[object]) -> None:
        """Leave out what removes a shared fixture, which the last test of all happens to do."""
        if fixturedef.scope != "function":
            self._mark(of_test=False)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        reports = [one for some in terminalreporter.stats.values() for one in some]
        dear = [
            f"{report.nodeid}: {found}"
            for report in reports
            if getattr(report, "when", None) == "teardown"
            for name, found in report.user_properties
            if name == DEAR
        ]
        if dear:
            terminalreporter.section("dear tests")
            terminalreporter.write_line("\n".join(sorted(dear)))

    def _mark(self, of_test: bool = True) -> float:
        """What the tree has taken since it was last asked; the test may have waited."""
        waited = self._waits.end()
        before, self._marked_s = self._marked_s, self._waits.begin(self._limits.first).taken_s
        self._waited_s += waited if of_test else 0.0
        return self._marked_s - before

    def _exceeded(self, times: float = 1.0) -> str:
        limits = self._limits
        accounts = [
            (f"fixture {name} takes", taken, "s of the processor, may take", limits.fixture)
            for name, taken in self._fixtures.items()
        ]
        accounts.append(("takes", self._own_s, "s of the processor, may take", limits.test))
        accounts.append(("waits for", self._waited_s, "s, may wait for", limits.waiting))
        return "; ".join(
            f"{does} {taken:.1f} {may} {limit:g}"
            for does, taken, may, limit in accounts
            if taken > times * limit
        )

    def _compiled(self) -> bool:
        return self._times_of_caches() != self._cached

    def _times_of_caches(self) -> list[int]:
        """When something was added to each folder of machine code."""
        if not self._caches.is_dir():
            return []
        folders = [one for one in sorted(self._caches.iterdir()) if one.is_dir()]
        return [one.stat().st_mtime_ns for one in folders]
