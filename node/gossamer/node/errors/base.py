"""The base of all errors of the node, and how they show values."""

from __future__ import annotations


class NodeError(Exception):
    """Base of all errors of the node; abstract, never raised itself."""


def brief(value: object) -> str:
    """The value as text of at most a line."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
