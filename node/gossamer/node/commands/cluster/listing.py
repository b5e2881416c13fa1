"""`gossamer node members`: who belongs to the cluster, as a running node has met them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import trio
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.text import Text

from gossamer.client.address import LocalAddress
from gossamer.client.errors import unwrapped
from gossamer.command.tables import FittingTable
from gossamer.node.commands.folder import address_of
from gossamer.node.doctor.failures import printable
from gossamer.node.local.client import open_client

WATCH_S: Final = 0.5

_HEADS: Final = ("name", "state", "since", "version", "certificate until", "key", "addresses")


def members(folder: Path | None, *, watch: bool, as_json: bool) -> None:
    """Print the members that the node in ``folder`` has met; with ``watch`` also what changes.

    Raises:
        NodeError: no node runs there.
    """
    address = address_of(folder)
    with unwrapped():
        said = trio.run(_ask, address)
        if as_json and not watch:
            print(json.dumps(said["members"], indent=2))
            return
        if as_json:
            for member in said["members"]:
                print(json.dumps({"change": "known", **member}), flush=True)
        elif sys.stdout.isatty():
            Console().print(members_table(said["members"]))
        else:
            print(*members_lines(said["members"]), sep="\n", flush=True)
        if watch:
            trio.run(_watch, address, said, _line_of_json if as_json else line_of)


def members_table(found: Sequence[Mapping[str, Any]]) -> FittingTable:
    """Members as a table for people."""
    table = FittingTable(*_HEADS, box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for row in map(_row, found):
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def members_lines(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Members as a line each for programs, whose columns stand below each other."""
    rows = [_HEADS, *map(_row, found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return list(map(printable, lines))


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    expires = one["certificate_expires"]
    return (
        one["name"],
        one["state"],
        _moment(one["since"]),
        one["version"],
        "" if expires is None else f"{datetime.fromtimestamp(expires, UTC):%Y-%m-%d}",
        one["key"],
        " ".join(one["addresses"]),
    )


def line_of(change: Mapping[str, Any]) -> str:
    """A change as a line for people."""
    who = f"{change['name']} ({change['key']})" if change["name"] else change["key"]
    why = f" ({change['cause']})" if change["cause"] else ""
    return printable(f"{_moment(change['at'])} {who} {_WORDS[change['change']]}{why}")


async def _ask(address: LocalAddress) -> dict[str, Any]:
    async with open_client(address, patience_s=0) as client:
        return await client.members()


async def _watch(
    address: LocalAddress, said: Mapping[str, Any], as_line: Callable[[Mapping[str, Any]], str]
) -> None:
    """Print changes after those of ``said``, over restarts of the node too."""
    told = _newest(said)
    async with open_client(address) as client:
        while True:
            said = await client.members()
            if _newest(said) < told:  # the node began anew, and counts from one again
                told = 0
            for change in said["changes"]:
                if change["number"] > told:
                    print(as_line(change), flush=True)
            told = _newest(said)
            await trio.sleep(WATCH_S)


def _newest(said: Mapping[str, Any]) -> int:
    return int(said["changes"][-1]["number"]) if said["changes"] else 0


def _line_of_json(change: Mapping[str, Any]) -> str:
    return json.dumps(change)


def _moment(when: float) -> str:
    return f"{datetime.fromtimestamp(when).astimezone():%Y-%m-%d %H:%M:%S}"


_WORDS: Final = {
    "joined": "has joined",
    "left": "has left",
    "failed": "has failed",
    "returned": "has returned",
    "revoked": "is revoked",
}
