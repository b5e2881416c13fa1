"""Events that are not their publisher's: counted, and named in the log, now and then."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import attrs

from gossamer.node.errors import ChangedEvent
from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.security.sealing import publisher_of

# Under which of `metrics.FORGERY_CAUSES` each counts.
CHANGED: Final = "changed"
UNSIGNED: Final = "signature"
OTHERS_NAME: Final = "name"
REVOKED: Final = "revoked"
UNKNOWN: Final = "unknown key"
TWO_CONTENTS: Final = "two contents"

# Seconds between two lines about the same neighbour for the same cause, and how many of these are
# remembered: who forges may do so thousands of times a second.
SAID_AGAIN_S: Final = 10.0
MOST_REMEMBERED: Final = 256


@attrs.define
class _Said:
    """When there was a line last, and of how many events there was none since."""

    at: float
    left_out: int = 0


@attrs.define(eq=False, slots=False)
class Forgeries:
    """Counts events that are not delivered because nothing proves that they are genuine.

    Args:
        clock: seconds, never going back.
    """

    _address_book: AddressBook
    _counters: Counters
    _clock: Callable[[], float] = time.monotonic

    def __attrs_post_init__(self) -> None:
        self._said: OrderedDict[tuple[str, int], _Said] = OrderedDict()

    def note(
        self, cause: str, event: int, sealed: bytes, brought_by: int, signed_by: int | None = None
    ) -> None:
        """An event is not believed.

        Args:
            cause: one of `metrics.FORGERY_CAUSES`.
            event: its identifier.
            sealed: all of it.
            brought_by: key of the neighbour that it came from, who need not have known.
            signed_by: key of the member that signed it, where one did.
        """
        fields = {} if signed_by is None else {"signed_by": self._text(signed_by)}
        self._note(cause, event, publisher_of(sealed), brought_by, fields)

    def note_changed(self, error: ChangedEvent, brought_by: int) -> None:
        """A neighbour changed an event, or passed on what it should not have taken."""
        self._note(CHANGED, error.event, error.publisher, brought_by, {})

    def note_two_contents(self, event: int, known: bytes, other: bytes, brought_by: int) -> None:
        """Two events have one identifier, of which the one that came first counts.

        Only who makes both can bring that about: who signed them, unless they name different peers.
        """
        if publisher_of(known) != publisher_of(other):
            self.note(TWO_CONTENTS, event, b"", brought_by)
        else:
            self.note(TWO_CONTENTS, event, other, brought_by)

    def _note(
        self, cause: str, event: int, publisher: int, brought_by: int, fields: dict[str, str]
    ) -> None:
        self._counters.events_forged[cause] += 1
        self._counters.drop("forged event")
        now = self._clock()
        said = self._said.get((cause, brought_by))
        if said is not None and now - said.at < SAID_AGAIN_S:
            said.left_out += 1
            return
        if said is not None and said.left_out:
            fields["more_like_this"] = str(said.left_out)
        self._said[cause, brought_by] = _Said(now)
        if len(self._said) > MOST_REMEMBERED:
            self._said.popitem(last=False)
        log.warning(
            "an event is not its publisher's",
            cause=cause,
            peer=self._text(brought_by),
            publisher=self._text(publisher),
            id=f"{event:016x}",
            **fields,
        )

    def _text(self, key: int) -> str:
        return "unknown" if key < 0 else self._address_book.text_of(key)
