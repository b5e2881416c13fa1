"""No mistake in copying a token passes."""

from __future__ import annotations

import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gossamer.node.errors import TokenTextError
from gossamer.node.security.joining.tokens import Token, read_token

hosts = st.from_regex(r"[a-z0-9.:-]{1,40}", fullmatch=True)
tokens = st.builds(
    Token,
    st.binary(min_size=16, max_size=16).map(bytes.hex),
    st.binary(min_size=32, max_size=32),
    st.integers(0, (1 << 62) - 1),
    st.lists(st.tuples(hosts, st.integers(1, 65_535)), min_size=1, max_size=8).map(tuple),
    st.binary(min_size=16, max_size=16),
)
positions = st.floats(0, 1, exclude_max=True)
letters = st.sampled_from(string.printable.strip()) | st.characters()


@given(tokens)
def test_every_token_comes_back_from_its_text(token: Token) -> None:
    assert read_token(token.to_text()) == token


@given(tokens, positions, letters)
def test_every_single_wrong_character_is_found(token: Token, where: float, letter: str) -> None:
    text = token.to_text()
    at = int(where * len(text))
    changed = text[:at] + letter + text[at + 1 :]
    assume(changed.strip() != text)
    with pytest.raises(TokenTextError):
        read_token(changed)


@given(tokens, positions)
def test_two_swapped_neighbours_are_found(token: Token, where: float) -> None:
    text = token.to_text()
    at = int(where * (len(text) - 1))
    changed = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    assume(changed != text)
    with pytest.raises(TokenTextError):
        read_token(changed)


@given(tokens, positions, positions)
def test_a_token_with_a_part_missing_is_found(token: Token, begin: float, end: float) -> None:
    text = token.to_text()
    low, high = sorted((int(begin * len(text)), int(end * len(text))))
    assume(low < high)
    with pytest.raises(TokenTextError):
        read_token(text[:low] + text[high:])


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_text_does_more_than_be_refused(data: bytes) -> None:
    with pytest.raises(TokenTextError):
        read_token("gossamer1-" + data.decode("latin-1"))
