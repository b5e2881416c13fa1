"""What all tests share: their order, how hypothesis runs, and rules in their compiled form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.kernel.rules import use_compiled

TESTS: Final = Path(__file__).parent
# Where the longest tests are, first; what runs last is short, so that all processes end together.
FOLDERS: Final = ("pipeline", "simulation", "network", "equivalence", "property", "unit")

# The first example of a test may compile a rule, so no example has a deadline.
settings.register_profile("gossamer", deadline=None)
settings.load_profile("gossamer")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with long tests, and let one process run all that share what takes long to make."""
    items.sort(key=lambda item: FOLDERS.index(_folder(item)))
    for item in items:
        if _folder(item) in ("unit", "property") and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.fast)
        shared = _shared_by(item)
        if shared is not None:
            item.add_marker(pytest.mark.xdist_group(shared))


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


def _folder(item: pytest.Item) -> str:
    """The folder right below `tests` that a test is in."""
    return item.path.relative_to(TESTS).parts[0]


def _shared_by(item: pytest.Item) -> str | None:
    """What a test shares with others: a fixture of the session, or those of its module."""
    fixtures = getattr(item, "_fixtureinfo", None)  # pytest has no other way to ask
    made = [] if fixtures is None else [found[-1] for found in fixtures.name2fixturedefs.values()]
    ours = [one for one in made if one.func.__module__.startswith("tests.")]
    for one in ours:
        if one.scope == "session":
            return str(one.argname)
    return item.path.stem if any(one.scope == "module" for one in ours) else None


@pytest.fixture
def compiled() -> Iterator[None]:
    """Rules that the test calls take their compiled form."""
    keep_compiled_code()
    with use_compiled():
        yield
