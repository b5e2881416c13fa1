"""Properties of which one example takes long."""

from __future__ import annotations

from hypothesis import settings


def few_examples(count: int) -> settings:
    """So many examples each time; as many as of any other property with `--all`."""
    most = settings().max_examples
    return settings(max_examples=most if most >= 100 else count)
