"""Text of files that people and other programs wrote: UTF-8, with a byte order mark or without."""

from __future__ import annotations

import codecs
from typing import Final

_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class EncodingError(ValueError):
    """Bytes are no text in UTF-8.

    Attributes:
        reason: what they are instead, to follow "is".
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def decoded(raw: bytes) -> str:
    """The text that the bytes of a file are, without the mark that some editors put before it.

    Raises:
        EncodingError: they are no UTF-8; says so of UTF-16, which has zeros between its letters.
    """
    if raw.startswith(_UTF_16) or b"\0" in raw[:4]:
        raise EncodingError("not UTF-8 but UTF-16")
    try:
        return raw.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise EncodingError(f"not UTF-8 at byte {error.start + 1}") from None
