"""One error instead of a group of one, so that callers can catch what the docstrings name."""

from __future__ import annotations

from gossamer.client.errors import only_error, unwrapped

__all__ = ["only_error", "unwrapped"]
