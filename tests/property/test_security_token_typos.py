"""No mistake in copying a token passes."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.node.errors import JoinError
from gossamer.node.security.joining.join_protocol import Token, read_token

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


@given(tokens, positions, positions, letters)
def test_a_token_comes_back_and_every_mistake_in_its_text_is_found(
    token: Token, where: float, end: float, letter: str
) -> None:
    """A wrong character, two swapped neighbours, and a part that is missing."""
    text = token.to_text()
    assert read_token(text) == token
    at, swapped = int(where * len(text)), int(where * (len(text) - 1))
    low, high = sorted((at, int(end * len(text))))
    for changed in (
        text[:at] + letter + text[at + 1 :],
        text[:swapped] + text[swapped + 1] + text[swapped] + text[swapped + 2 :],
        text[:low] + text[high:],
    ):
        if changed.strip() != text:
            with pytest.raises(JoinError):
                read_token(changed)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_text_does_more_than_be_refused(data: bytes) -> None:
    with pytest.raises(JoinError):
        read_token("gossamer1-" + data.decode("latin-1"))
