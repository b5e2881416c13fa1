"""Errors of the protocol layer cross processes whole, as results of parallel runs have to."""

from __future__ import annotations

import copy
import pickle

import pytest

from gossamer.protocol.content.errors import UnknownAttributeError
from gossamer.protocol.kernel import errors

ERRORS = [
    errors.CapacityError("the outbox", 12, "raise outbox_words"),
    errors.ConfigError("links", 0, "at least 2"),
    errors.ExpressionError("prise > 5", 1, "there is no attribute 'prise'"),
    errors.InvariantError("a row vanished"),
    errors.RemoteProtocolError("a frame of 9 bytes"),
    errors.MalformedRecordError(20, "count", 99, "at most 8"),
    errors.RecordError(129, 2, 99, 4, "TO is 99, expected a peer from 0 to 3"),
    errors.RuleCompilationError("step", "gossip.py", 31, "print needs Python's interpreter"),
    errors.RuleError(
        "step", "gossip.py", 31, 3, "cycle 5", (129, 7, 3), "it writes row 7 of total"
    ),
    errors.StructError("Shares", "view", "the name is taken", "another name"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_after_a_journey(error: errors.ProtocolError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert again.args == error.args
        assert vars(again) == vars(error)


def test_every_kind_of_error_is_tried() -> None:
    kinds = {one for one in _all_kinds(errors.ProtocolError) if one.__module__.endswith("l.errors")}
    abstract = {"LocalProtocolError"}
    assert {one.__name__ for one in kinds} - abstract == {type(e).__name__ for e in ERRORS}
    assert issubclass(UnknownAttributeError, errors.ProtocolError)


def _all_kinds(kind: type[errors.ProtocolError]) -> set[type[errors.ProtocolError]]:
    return {found for sub in kind.__subclasses__() for found in {sub, *_all_kinds(sub)}}
