"""Errors of the protocol layer cross processes whole, as results of parallel runs have to."""

from __future__ import annotations

import copy
import pickle

import pytest

from gossamer.protocol.content.errors import UnknownAttributeError
from gossamer.protocol.errors import (
    CapacityError,
    ConfigError,
    ExpressionError,
    InvariantError,
    MalformedRecordError,
    ProtocolError,
    RemoteProtocolError,
)

ERRORS = [
    CapacityError("the outbox", 12, "raise outbox_words"),
    ConfigError("links", 0, "at least 2"),
    ExpressionError("prise > 5", 1, "there is no attribute 'prise'"),
    InvariantError("a row vanished"),
    RemoteProtocolError("a frame of 9 bytes"),
    MalformedRecordError(20, "count", 99, "at most 8"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_after_a_journey(error: ProtocolError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert again.args == error.args
        assert vars(again) == vars(error)


def test_every_kind_of_error_is_tried() -> None:
    kinds = {kind for kind in _all_kinds(ProtocolError) if kind.__module__.endswith("l.errors")}
    abstract = {"LocalProtocolError"}
    assert {kind.__name__ for kind in kinds} - abstract == {type(e).__name__ for e in ERRORS}
    assert issubclass(UnknownAttributeError, ProtocolError)


def _all_kinds(kind: type[ProtocolError]) -> set[type[ProtocolError]]:
    return {found for sub in kind.__subclasses__() for found in {sub, *_all_kinds(sub)}}
