"""`gossamer request` and `gossamer reply`: an event whose publisher waits for replies."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

from gossamer.client.errors import unwrapped
from gossamer.client.link import LocalAddress
from gossamer.client.results import Payload, Reply, Request, Requests
from gossamer.command.waiting import waiting
from gossamer.node.commands.clients.event_text import (
    event_of_arguments,
    line_of_event,
    write_text,
)
from gossamer.node.commands.clients.subscribing import Wanted, taken, tell_change
from gossamer.node.commands.folder import address_of, ask
from gossamer.node.errors import RefusedByNodeError
from gossamer.node.local.client import LocalClient, open_client
from gossamer.protocol.content.limits import MAX_PAYLOAD_BYTES
from gossamer.protocol.content.values import Payload as CheckedPayload

JSON_TYPE: Final = "application/json"
# Of what a command that failed said, the end.
REASON_BYTES: Final = 2048


def request(
    folder: Path | None,
    arguments: Sequence[str],
    payload: CheckedPayload | None,
    *,
    timeout_s: float,
    count: int,
    raw: bool,
) -> bool:
    """Publish a request and print the replies; return whether all came, none of a failure.

    Args:
        folder: of the node.
        arguments: the event, as of `gossamer pub`.
        payload: what it carries.
        timeout_s: for how long to wait for replies.
        count: how many to wait for.
        raw: whether the bytes of replies are printed as they are.

    Raises:
        NoReplyError: none came in time.
        NodeError: no node runs there, or it refuses; nothing is known where the connection ended.
        EventInputError: the arguments describe no event.
    """

    async def work(client: LocalClient) -> list[Reply]:
        values = event_of_arguments(client.schema, arguments)
        return await client.request(values, payload=payload, timeout_s=timeout_s, replies=count)

    with waiting("waiting for replies"):
        replies = ask(address_of(folder), work)
    for one in replies:
        _print(one, raw=raw)
    if len(replies) < count:
        came = f"{len(replies)} of {count} replies came within {timeout_s:g} s"
        print(f"gossamer: {came}", file=sys.stderr)
    return len(replies) == count and not any(one.failed for one in replies)


def reply(folder: Path | None, wanted: Wanted, command: str | None, content_type: str) -> None:
    """Reply to requests until there were enough of them.

    Args:
        folder: of the node.
        wanted: which requests are replied to.
        command: for the shell; reads the request and prints the reply. None replies the request.
        content_type: of what the command prints.

    Raises:
        NodeError: no node runs there, or it refuses.
    """
    with unwrapped():
        trio.run(_reply, address_of(folder), wanted, command, content_type)


async def _reply(
    address: LocalAddress, wanted: Wanted, command: str | None, content_type: str
) -> None:
    left = wanted.count
    # Apart from the subscription, since events that are not taken yet hold up answers.
    async with open_client(address) as replier:
        replier.check_peer("requests")
        async with taken(address, wanted, partial(tell_change, connected="replying")) as events:
            requests = Requests(events, replier)
            while left is None or left > 0:
                await _deal_with(await anext(requests), command, content_type)
                left = None if left is None else left - 1


async def _deal_with(one: Request, command: str | None, content_type: str) -> None:
    line = line_of_event(one.event)
    try:
        if command is None:
            await one.reply(Payload(line.encode(), JSON_TYPE))
        else:
            await _run(one, command, line, content_type)
    except RefusedByNodeError as error:
        print(f"gossamer: request {one.event.id}: {error}", file=sys.stderr)


async def _run(one: Request, command: str, line: str, content_type: str) -> None:
    """Reply what a command prints that reads the request, or that it failed."""
    done = await trio.run_process(
        command,
        shell=True,
        stdin=line.encode() + b"\n",
        capture_stdout=True,
        capture_stderr=True,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr[-REASON_BYTES:].decode(errors="replace").strip()
        await one.fail(said or f"the command ended with exit code {done.returncode}")
    elif len(done.stdout) > MAX_PAYLOAD_BYTES:
        size = len(done.stdout)
        await one.fail(f"the command printed {size} bytes, expected at most {MAX_PAYLOAD_BYTES}")
    else:
        await one.reply(Payload(done.stdout, content_type))


def _print(one: Reply, *, raw: bool) -> None:
    if raw:
        sys.stdout.flush()
        os.write(sys.stdout.fileno(), one.payload.data)
        return
    shown: dict[str, Any] = {"replier": one.replier, "failed": one.failed}
    shown |= {"content_type": one.payload.content_type, **_content(one.payload)}
    write_text(sys.stdout, json.dumps(shown, ensure_ascii=False) + "\n")


def _content(payload: Payload) -> dict[str, str]:
    """What a payload holds: a text as it is, if its type says that it is one."""
    if payload.content_type.startswith(("text/", JSON_TYPE)):
        try:
            return {"text": payload.data.decode()}
        except UnicodeDecodeError:
            pass
    return {"base64": base64.b64encode(payload.data).decode()}
