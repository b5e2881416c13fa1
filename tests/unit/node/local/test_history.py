"""The log of events for clients with a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.node.local.history import PENDING, open_history
from gossamer.node.peer.frames.events import Event
from support.tasks import turns_of_others


@pytest.mark.trio
async def test_an_event_is_taken_without_a_turn_for_others_while_there_is_room(
    tmp_path: Path,
) -> None:
    """Turns of a busy peer are long: with one for each event, events would come faster."""
    async with open_history(tmp_path / "clients.db", 3600) as history:
        async with turns_of_others() as turns:
            for number in range(PENDING):
                await history.append(Event(number, {"price": 1.0}, 1, 0.0))
            taken_in = turns()
        assert taken_in <= 2
