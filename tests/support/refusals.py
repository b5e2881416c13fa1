"""Texts that are refused, with the place of the fault."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gossamer.protocol.kernel.errors import ExpressionError


def check_refused(parse: Callable[[str], object], text: str, column: int, reason: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert reason in caught.value.reason
    assert "\n" not in caught.value.reason
    assert caught.value.column == column
    assert caught.value.text == text
