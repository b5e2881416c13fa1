"""Errors of replays on real peers."""

from __future__ import annotations

from gossamer.node.errors import NodeError


class ReplayError(NodeError):
    """A replay cannot go on; its peers are stopped.

    Attributes:
        deaths: how often a process of peers ended.
        code: its last exit code.
    """

    def __init__(self, deaths: int, code: int) -> None:
        self.deaths = deaths
        self.code = code
        super().__init__(
            f"a process of peers ended {deaths} times, the last time with exit code {code}, "
            "expected it to run to the end of the replay"
        )
