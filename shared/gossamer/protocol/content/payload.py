"""Payloads: bytes that travel with an event, and that nothing routes or matches by."""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from gossamer.protocol.content.errors import ContentError
from gossamer.protocol.content.limits import MAX_CONTENT_TYPE, MAX_PAYLOAD_BYTES

UNKNOWN_TYPE: Final = "application/octet-stream"

_CONTENT_TYPE: Final = re.compile(r"[!-.0-~]+/[!-.0-~]+(?: *; *[!-~]+)*")


@frozen
class Payload:
    """What an event carries beside its values.

    Raises `ContentError` for more bytes than allowed, and for what is no content type.

    Attributes:
        data: the bytes.
        content_type: what they are, as of MIME (RFC 6838), such as "text/plain; charset=utf-8".
    """

    data: bytes
    content_type: str = UNKNOWN_TYPE

    def __attrs_post_init__(self) -> None:
        if type(self.data) is not bytes:
            raise ContentError("", f"a payload is bytes, not {type(self.data).__name__}")
        if len(self.data) > MAX_PAYLOAD_BYTES:
            size = len(self.data)
            raise ContentError("", f"a payload takes {MAX_PAYLOAD_BYTES} bytes, not {size}")
        if not _is_content_type(self.content_type):
            expected = "such as 'image/png'"
            raise ContentError(
                "", f"{str(self.content_type)[:60]!r} is no content type, {expected}"
            )


def _is_content_type(text: object) -> bool:
    return (
        isinstance(text, str)
        and len(text) <= MAX_CONTENT_TYPE
        and _CONTENT_TYPE.fullmatch(text) is not None
    )
