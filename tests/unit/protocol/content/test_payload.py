"""Payloads: what they may be."""

from __future__ import annotations

from typing import Any

import pytest

from gossamer.protocol.content.errors import ContentError
from gossamer.protocol.content.payload import MAX_PAYLOAD_BYTES, UNKNOWN_TYPE, Payload


@pytest.mark.parametrize(
    "content_type",
    [UNKNOWN_TYPE, "image/png", "text/plain; charset=utf-8", "application/vnd.a+json;v=1"],
)
def test_bytes_of_any_type_are_taken(content_type: str) -> None:
    assert Payload(bytes(range(256)), content_type).content_type == content_type
    assert Payload(b"").content_type == UNKNOWN_TYPE


@pytest.mark.parametrize(
    ("data", "content_type", "words"),
    [
        (b"x" * (MAX_PAYLOAD_BYTES + 1), UNKNOWN_TYPE, "takes 49152 bytes, not 49153"),
        ("text", UNKNOWN_TYPE, "is bytes, not str"),
        (b"", "", "is no content type, such as 'image/png'"),
        (b"", "text", "is no content type"),
        (b"", "text/", "is no content type"),
        (b"", "text/plain\n", "is no content type"),
        (b"", "a/" + "b" * 126, "is no content type"),
        (b"", 5, "is no content type"),
    ],
)
def test_anything_else_is_refused(data: Any, content_type: Any, words: str) -> None:
    with pytest.raises(ContentError, match=words):
        Payload(data, content_type)
