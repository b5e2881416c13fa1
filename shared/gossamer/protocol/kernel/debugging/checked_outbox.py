"""The outbox as rules take it in a checked run."""

from __future__ import annotations

import sys
from typing import Any

from gossamer.protocol.kernel.debugging.checked_arrays import (
    CheckedWords,
    RuleFault,
    UnknownPeer,
    checked_words,
)
from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    KIND,
    OPEN,
    TAIL,
    TO,
    UNREACHABLE,
    Outbox,
    close_record,
    drop_record,
    open_record,
)


class CheckedOutbox:
    """An outbox that checks every record that is opened, written and closed.

    Of its words a rule may touch those that it has written in this step, and the room of the
    record that is open.

    Args:
        out: the outbox behind it.
        population: how many peers there are.
    """

    def __init__(self, out: Outbox, population: int) -> None:
        self._out = out
        self._population = population
        self._room = 0
        self._opened_by = ("", "", 0)
        begin = int(out.cursor[TAIL])
        self.words: CheckedWords = checked_words(
            out.words, "out.words", begin, begin, "what this step has opened"
        )
        self.cursor = out.cursor

    # What `messages` calls instead of its rules.

    def open_record(self, kind: int, to: int, source: int, body_words: int) -> Any:
        """As `messages.open_record`."""
        self.check_closed("another is opened")
        if body_words < 0:
            raise RuleFault(f"it opens a record of {body_words} body words, expected 0 or more")
        self._check_header(kind, to, source)
        caller = sys._getframe(2)  # past the rule that `messages` has
        self._opened_by = (caller.f_code.co_name, caller.f_code.co_filename, caller.f_lineno)
        at = open_record.interpreted(self._out, kind, to, source, body_words)
        if at >= 0:
            self._room = body_words
            self.words.high = int(at) + BODY + body_words
        return at

    def close_record(self, at: int, body_words: int) -> None:
        """As `messages.close_record`."""
        self._check_open(at)
        if not 0 <= body_words <= self._room:
            raise RuleFault(
                f"it closes a record with {body_words} body words, "
                f"expected 0 to {self._room}, for which it was opened"
            )
        words = self._out.words
        self._check_header(int(words[at + KIND]), int(words[at + TO]), int(words[at + FROM]))
        close_record.interpreted(self._out, at, body_words)
        self.words.high = int(self._out.cursor[TAIL])

    def drop_record(self, at: int) -> None:
        """As `messages.drop_record`."""
        self._check_open(at)
        drop_record.interpreted(self._out, at)
        self.words.high = int(self._out.cursor[TAIL])

    def check_closed(self, by: str) -> None:
        """Refuse that a record is still open.

        Args:
            by: what happens by which it should have been closed.
        """
        if self._out.cursor[OPEN] != 0:
            at = int(self._out.cursor[OPEN]) - 1
            kind, to = self._out.words[at + KIND], self._out.words[at + TO]
            raise RuleFault(
                f"the record of kind {kind} to {to} that it opened is not closed when {by}, "
                "expected close_record or drop_record before",
                self._opened_by,
            )

    def _check_open(self, at: int) -> None:
        if at < 0:
            raise RuleFault(
                "it goes on with a record for which open_record found no room and gave -1, "
                "expected a return there or a larger reserve"
            )
        if self._out.cursor[OPEN] != at + 1:
            raise RuleFault(f"it closes a record at {at}, expected the one that it has opened")

    def _check_header(self, kind: int, to: int, source: int) -> None:
        if not 0 < kind < UNREACHABLE:
            raise RuleFault(f"it opens a record of kind {kind}, expected 1 to {UNREACHABLE - 1}")
        for name, peer in (("TO", to), ("FROM", source)):
            if not 0 <= peer < self._population:
                raise UnknownPeer(
                    f"it writes a record of kind {kind} whose {name} is {peer}, "
                    f"expected a peer from 0 to {self._population - 1}"
                )
