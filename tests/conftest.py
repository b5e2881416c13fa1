"""What all tests share: their order, how hypothesis runs, and rules in their compiled form."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings

from gossamer.compiled.store import cache_root, keep_compiled_code
from gossamer.protocol.kernel.rules import use_compiled
from support.draws import ALL_EXAMPLES, QUICK_EXAMPLES, Draws
from support.effort import EffortGuard

TESTS: Final = Path(__file__).parent
# Where the longest tests are, first; what runs last is short, so that all processes end together.
FOLDERS: Final = ("pipeline", "simulation", "network", "equivalence", "property", "unit")

# `quick` draws the same examples for a test each time: what passed passes again, and what failed
# fails again when it is run alone. `all` draws new ones, and prints how to repeat what failed. No
# example has a deadline, since the first one may compile a rule.
settings.register_profile("quick", max_examples=QUICK_EXAMPLES, derandomize=True, deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of campaigns, and of what is computed and kept."""
    group = parser.getgroup("gossamer")
    group.addoption(
        "--all", action="store_true", help="campaign tests, and more examples of each property"
    )
    group.addoption(
        "--draws",
        type=int,
        metavar="N",
        help="drawn cases of each campaign, and of each property if more",
    )
    group.addoption("--first-draw", type=int, default=0, metavar="N", help="the first of them (0)")
    group.addoption(
        "--write-golden", action="store_true", help="write golden measures, not compare"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose how much hypothesis draws, before a module of tests is imported."""
    # What a shell starts in the background ignores Ctrl-C, and so would what is tested.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("all"):
        most = max(ALL_EXAMPLES, config.getoption("draws") or 0)
        settings.register_profile("all", max_examples=most, print_blob=True, deadline=None)
        settings.load_profile("all")
        return
    settings.load_profile("quick")
    if not config.getoption("cov_source", None):  # coverage doubles what tests take
        config.pluginmanager.register(EffortGuard(os.getpid(), cache_root()))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with long tests, and let one process run those of a file, or of what files share."""
    if not _asks_for_campaigns(config):
        campaigns = [item for item in items if item.get_closest_marker("campaign") is not None]
        if campaigns:
            config.hook.pytest_deselected(items=campaigns)
            items[:] = [item for item in items if item.get_closest_marker("campaign") is None]
    items.sort(key=lambda item: FOLDERS.index(_folder(item)))
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_shared_by(item)))


@pytest.hookimpl(wrapper=True)
def pytest_collection_finish(session: pytest.Session) -> Iterator[None]:
    """Name the group of a test at the end of its id, where pytest-xdist looks for it.

    With pytest from 9.2 on its own attempt (of version 3.8) comes to nothing, without a word.
    """
    if getattr(session.config.option, "loadgroup", False):
        for item in session.items:
            group = item.get_closest_marker("xdist_group")
            if group is not None and not item.nodeid.endswith(f"@{group.args[0]}"):
                known: Any = item
                known._id = type(known._id).parse(f"{item.nodeid}@{group.args[0]}")
                assert item.nodeid.endswith(f"@{group.args[0]}"), "tests cannot be kept together"
    return (yield)


def _asks_for_campaigns(config: pytest.Config) -> bool:
    """Whether campaign tests are asked for: all, by the mark, or one by its name."""
    return bool(
        config.getoption("all")
        or "campaign" in config.getoption("markexpr")
        or any("::" in argument for argument in config.args)
    )


def _folder(item: pytest.Item) -> str:
    """The folder right below `tests` that a test is in."""
    return item.path.relative_to(TESTS).parts[0]


def _shared_by(item: pytest.Item) -> str:
    """What a test shares with others: a fixture of the session, or its file.

    Tests of a file run the same code, which each process that runs it would load anew.
    """
    fixtures = getattr(item, "_fixtureinfo", None)  # pytest has no other way to ask
    made = [] if fixtures is None else [found[-1] for found in fixtures.name2fixturedefs.values()]
    for one in made:
        ours = one.func.__module__.startswith("tests.") and one.func.__module__ != __name__
        if ours and one.scope == "session":
            return str(one.argname)
    return item.path.stem


@pytest.fixture(scope="session")
def draws(request: pytest.FixtureRequest) -> Draws:
    """How many drawn cases a campaign runs, and which."""
    return Draws(request.config.getoption("draws"), request.config.getoption("first_draw"))


@pytest.fixture(scope="session")
def write_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden measures are written anew in place of being compared."""
    return bool(request.config.getoption("write_golden"))


@pytest.fixture(autouse=True)
def no_log_of_a_node_is_left() -> Iterator[None]:
    """A node that ran in this process does not go on to count what later tests log."""
    root = logging.getLogger()
    level = root.level
    yield
    root.setLevel(level)
    for handler in list(root.handlers):
        if type(handler).__module__.startswith("gossamer."):
            root.removeHandler(handler)


@pytest.fixture
def compiled() -> Iterator[None]:
    """Rules that the test calls take their compiled form."""
    keep_compiled_code()
    with use_compiled():
        yield


@pytest.fixture(scope="session", autouse=True)
def hang_ups() -> Iterator[None]:
    """Tests and what they start do not ignore hang-ups, as they would under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
