"""What tests take of the machine, measured and limited."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.effort import INTERVAL_S, MEASURES_WAITS, EffortGuard, Limits, ProcessTree, Waits

pytestmark = pytest.mark.skipif(not MEASURES_WAITS, reason="there is no /proc")

IDLES = "input()"
SPINS = "while True: pass"
STARTS_ONE_THAT_SPINS = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SPINS!r}])"
# Neither a limit of the guard: what is compared is the test's own part.
TESTS = """
import pytest, subprocess, sys, time

SPIN = "import time\\nwhile time.process_time() < {}: pass"

@pytest.fixture(scope="module")
def shared():
    exec(SPIN.format(time.process_time() + 0.5))
    yield
    exec(SPIN.format(time.process_time() + 0.5))

def test_is_quick(): pass
def test_spins(): exec(SPIN.format(time.process_time() + 0.4))
def test_starts_what_spins(): subprocess.run([sys.executable, "-c", SPIN.format(0.4)])
def test_sleeps(): time.sleep(1.0)
@pytest.mark.campaign
def test_may_spin(): exec(SPIN.format(time.process_time() + 0.4))
def test_adds_to_the_cache(cache):
    (cache / "code").mkdir()
    exec(SPIN.format(time.process_time() + 0.4))
def test_makes_what_is_shared(shared): pass
def test_removes_what_is_shared(shared): pass
"""


class Run:
    """A plugin that keeps what became of tests, and gives them a folder."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self.texts: dict[str, str] = {}

    @pytest.fixture
    def cache(self) -> Path:
        return self._cache

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", "campaign")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            self.texts[report.nodeid.partition("::test_")[2]] = report.longreprtext


def start(code: str, processor: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{processor}}})\n{code}"],
        stdin=subprocess.PIPE,
    )


@pytest.fixture
def processes(request: pytest.FixtureRequest) -> Iterator[list[subprocess.Popen[bytes]]]:
    processor = min(os.sched_getaffinity(0))
    started = [start(code, processor) for code in request.param]
    yield started
    for process in started:
        for number in ProcessTree(process.pid).processes():
            os.kill(number, 9)
        process.communicate()


@pytest.mark.parametrize("processes", [[SPINS, SPINS, SPINS]], indirect=True)
def test_waiting_for_a_processor_is_no_waiting(processes: list[subprocess.Popen[bytes]]) -> None:
    tree = ProcessTree(processes[0].pid)
    waits = Waits(tree)
    begun = waits.begin(INTERVAL_S)
    while tree.snapshot().taken_s < begun.taken_s + 0.4:
        time.sleep(0.05)
    assert waits.end() < 0.1


@pytest.mark.parametrize("processes", [[IDLES]], indirect=True)
def test_waiting_for_an_input_is_waiting(processes: list[subprocess.Popen[bytes]]) -> None:
    waits = Waits(ProcessTree(processes[0].pid))
    waits.begin(INTERVAL_S)
    while waits.waited_s < 0.5:
        time.sleep(0.05)
    assert waits.end() >= 0.5


@pytest.mark.parametrize("processes", [[STARTS_ONE_THAT_SPINS]], indirect=True)
def test_children_count_alive_and_dead(processes: list[subprocess.Popen[bytes]]) -> None:
    tree = ProcessTree(processes[0].pid)
    while len(tree.processes()) < 2 or tree.snapshot().taken_s < 0.4:
        time.sleep(0.05)
    own = ProcessTree(os.getpid())
    assert own.snapshot().taken_s >= tree.snapshot().taken_s >= 0.4
    for number in tree.processes():
        os.kill(number, 9)
    processes[0].wait()
    assert own.snapshot().taken_s >= 0.4


def test_guard_names_tests_that_are_dear(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "empty.ini").write_text("")
    cache = tmp_path / "cache"
    cache.mkdir()
    limits = Limits(test=0.3, fixture=0.4, waiting=0.1, first=0.1)
    guard = EffortGuard(os.getpid(), cache, limits=limits, busy=1.0)
    run = Run(cache)
    command = ["-c", tmp_path / "empty.ini", "-p", "no:cacheprovider", "-q", tmp_path]
    pytest.main([*map(str, command)], plugins=[guard, run])
    texts = run.texts
    for name in ("spins", "starts_what_spins"):
        assert "of the processor, may take 0.3" in texts.pop(name)
    assert "may wait for 0.1" in texts.pop("sleeps")
    assert texts.pop("makes_what_is_shared").startswith("fixture shared takes")
    assert texts == dict.fromkeys(
        ("is_quick", "may_spin", "adds_to_the_cache", "removes_what_is_shared"), ""
    )
