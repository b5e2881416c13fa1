"""Join tokens as texts."""

from __future__ import annotations

from contextlib import suppress

import pytest
from attrs import evolve

from gossamer.node.errors import TokenTextError
from gossamer.node.security.joining.tokens import PREFIX, Token, read_token, token_id

TOKEN = Token("ab" * 16, b"f" * 32, 12345, (("192.168.1.20", 7401), ("fe80::1", 7401)), b"s" * 16)


def test_a_token_comes_back_from_its_text() -> None:
    assert read_token(TOKEN.to_text()) == TOKEN


def test_space_around_a_token_does_not_matter() -> None:
    assert read_token(f"  {TOKEN.to_text()}\n") == TOKEN


def test_a_token_is_one_word_that_shells_leave_alone() -> None:
    assert set(TOKEN.to_text().removeprefix(PREFIX)) <= set("abcdefghijklmnopqrstuvwxyz234567")


def test_neither_text_nor_identifier_shows_the_secret() -> None:
    assert "ssss" not in repr(TOKEN)
    assert token_id(TOKEN.secret) != token_id(b"t" * 16)
    assert TOKEN.secret not in token_id(TOKEN.secret)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "begins with gossamer1-"),
        ("hello", "begins with gossamer1-"),
        ("gossamer2-aaaa", "of version 2, expected 1"),
        (PREFIX, "character is wrong or missing"),
        (PREFIX + "a", "character is missing"),
        (PREFIX + "0" * 8, "does not belong"),
        (PREFIX + "a" * 5000, "too long"),
        (TOKEN.to_text().upper(), "begins with"),
        (PREFIX + TOKEN.to_text().removeprefix(PREFIX).upper(), "capital letters"),
        (TOKEN.to_text()[:-1], "character is"),
        (TOKEN.to_text() + "a", "character is"),
        (PREFIX + "ü" * 8, "does not belong"),
    ],
)
def test_what_is_no_token_is_refused_with_the_reason(text: str, complaint: str) -> None:
    with pytest.raises(TokenTextError, match=complaint):
        read_token(text)


def test_every_last_character_but_the_right_one_is_refused() -> None:
    """With some lengths the last one has bits that stand for nothing."""
    alphabet = "abcdefghijklmnopqrstuvwxyz234567"
    for host in ("h", "ho", "hos", "host", "hosts"):
        text = evolve(TOKEN, addresses=((host, 7401),)).to_text()
        accepted = []
        for letter in alphabet:
            with suppress(TokenTextError):
                accepted.append(read_token(text[:-1] + letter).to_text())
        assert accepted == [text]


@pytest.mark.parametrize(
    "addresses", [(), (("h", 1),) * 9, (("", 1),), (("h", 0),), (("h", 65_536),), (("h" * 256, 1),)]
)
def test_a_token_with_impossible_addresses_is_refused(
    addresses: tuple[tuple[str, int], ...],
) -> None:
    text = Token("ab" * 16, b"f" * 32, 1, addresses, b"s" * 16).to_text()
    with pytest.raises(TokenTextError):
        read_token(text)


@pytest.mark.parametrize(
    "token",
    [
        Token("ab" * 15, b"f" * 32, 1, (("h", 1),), b"s" * 16),
        Token("ab" * 16, b"f" * 31, 1, (("h", 1),), b"s" * 16),
        Token("ab" * 16, b"f" * 32, 1 << 62, (("h", 1),), b"s" * 16),
        Token("ab" * 16, b"f" * 32, 1, (("h", 1),), b"s" * 17),
    ],
    ids=["cluster", "fingerprint", "inviter", "secret"],
)
def test_a_token_with_a_part_of_the_wrong_size_is_refused(token: Token) -> None:
    with pytest.raises(TokenTextError, match="does not hold"):
        read_token(token.to_text())
