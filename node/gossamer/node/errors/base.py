"""The base of all errors of the node, and how they show values."""

from __future__ import annotations

from gossamer.client.errors import NodeError

__all__ = ["NodeError", "brief"]


def brief(value: object) -> str:
    """The value as text of at most a line."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
