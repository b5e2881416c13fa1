"""CBOR as it is taken from anybody: values that are no more than what their bytes say.

No tags (they make a decoder build dates, numbers and patterns at the sender's will), no indefinite
lengths, no duplicate keys, bounded depth.
"""

from __future__ import annotations

import io
from typing import Any, Final, NoReturn

import cbor2


def plain_decoder(data: bytes | bytearray, depth: int) -> cbor2.CBORDecoder:
    """A decoder of ``data`` that raises `CBORDecodeError` or ValueError at anything but the above.

    Args:
        data: what it begins to read; whether anything is left is for the caller to find out.
        depth: containers within each other.
    """
    return cbor2.CBORDecoder(
        io.BytesIO(data),
        max_depth=depth,
        allow_indefinite=False,
        allow_duplicate_keys=False,
        strict_hashable_types=True,
        tag_hook=_refuse_tag,
        semantic_decoders=_REFUSE_ALL_TAGS,
    )


def plain_value(data: bytes, depth: int) -> Any:
    """The value that ``data`` begins with, as `plain_decoder` reads it; in a third of the time.

    Whether anything is left is for the caller to find out.
    """
    return cbor2.loads(
        data,
        max_depth=depth,
        allow_indefinite=False,
        allow_duplicate_keys=False,
        strict_hashable_types=True,
        tag_hook=_refuse_tag,
        semantic_decoders=_REFUSE_ALL_TAGS,
    )


def _refuse_tag(*_: object) -> NoReturn:
    raise ValueError("tags are not allowed")


class _RefuseAllTags(dict[int, Any]):
    """Stands for a table that maps every tag to the same refusal, and stays empty."""

    def __missing__(self, _: int) -> Any:
        return _refuse_tag


_REFUSE_ALL_TAGS: Final = _RefuseAllTags()
