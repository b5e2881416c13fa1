"""What all tests share: how hypothesis runs, and rules in their compiled form."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.kernel.rules import use_compiled

# The first example of a test may compile a rule, so no example has a deadline.
settings.register_profile("gossamer", deadline=None)
settings.load_profile("gossamer")


@pytest.fixture
def compiled() -> Iterator[None]:
    """Rules that the test calls take their compiled form."""
    keep_compiled_code()
    with use_compiled():
        yield
