"""Descriptors as words: the handle in the low bits, the age or timestamp above it."""

from __future__ import annotations

HANDLE_BITS = 32
HANDLE_MASK = (1 << HANDLE_BITS) - 1
# Of a descriptor in rounds; with some samplers a timestamp has its place.
MAX_AGE = (1 << 29) - 1
