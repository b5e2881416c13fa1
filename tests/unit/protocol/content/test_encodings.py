"""Bytes of files are UTF-8, with a mark or without; UTF-16 is named."""

from __future__ import annotations

import pytest

from gossamer.protocol.content.encodings import EncodingError, decoded


@pytest.mark.parametrize("text", ["", "a", "Zürich\r\n\U0001f310", "a\ufeff"])
def test_a_mark_before_the_text_is_no_part_of_it(text: str) -> None:
    assert decoded(text.encode()) == decoded(text.encode("utf-8-sig")) == text


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        *((b"a\xffb", "not UTF-8 at byte 2"), (b"\xef\xbb", "not UTF-8 at byte 1")),
        *(
            ("a".encode(name), "not UTF-8 but UTF-16")
            for name in ("utf-16", "utf-16-le", "utf-16-be")
        ),
    ],
)
def test_what_is_no_utf_8_is_told(raw: bytes, reason: str) -> None:
    with pytest.raises(EncodingError, match=f"^{reason}$"):
        decoded(raw)
