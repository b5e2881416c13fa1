"""CBOR in its one canonical form: what was signed can only be written one way."""

from __future__ import annotations

from typing import Any, Final

import cbor2

from gossamer.node.transport.base.strict_cbor import plain_value

# Nothing signed or exchanged here is a list of more than pairs.
_DEPTH: Final = 4


def encode(value: object) -> bytes:
    """The canonical CBOR of ``value``."""
    return cbor2.dumps(value, canonical=True)


def decode(data: bytes) -> Any:
    """What ``encode`` made ``data`` of.

    Raises:
        ValueError: ``data`` is not canonical CBOR of plain, shallow values.
    """
    try:
        value = plain_value(data, _DEPTH)
        canonical = encode(value) == data
    except (cbor2.CBORError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"not CBOR: {error}") from error
    if not canonical:
        raise ValueError("not canonical CBOR")
    return value
