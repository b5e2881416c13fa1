"""CBOR in its one canonical form: what was signed can only be written one way."""

from __future__ import annotations

from typing import Any, Final, NoReturn

import cbor2

# Nothing signed or exchanged here is a list of more than pairs.
_DEPTH: Final = 4


def _refuse_tag(*_: object) -> NoReturn:
    raise ValueError("tags are not allowed")


class _RefuseAllTags(dict[int, Any]):
    """Maps every tag to the same refusal: some would be made objects of at the sender's will."""

    def __missing__(self, _: int) -> Any:
        return _refuse_tag


def encode(value: object) -> bytes:
    """The canonical CBOR of ``value``."""
    return cbor2.dumps(value, canonical=True)


def decode(data: bytes) -> Any:
    """What ``encode`` made ``data`` of.

    Raises:
        ValueError: ``data`` is not canonical CBOR of plain, shallow values.
    """
    try:
        value = cbor2.loads(
            data,
            max_depth=_DEPTH,
            allow_indefinite=False,
            allow_duplicate_keys=False,
            strict_hashable_types=True,
            tag_hook=_refuse_tag,
            semantic_decoders=_RefuseAllTags(),
        )
        canonical = encode(value) == data
    except (cbor2.CBORError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"not CBOR: {error}") from error
    if not canonical:
        raise ValueError("not canonical CBOR")
    return value
