"""A chat: who is in a room sees its lines, and those anywhere that mention them.

    gossamer node init chat --peers 2 --port 7770 --schema examples/node/chat.toml
    gossamer node run chat/peer1 chat/peer2
    python examples/node/chat.py chat/peer1 ada garden
    python examples/node/chat.py chat/peer2 bob garden

Lines of standard input are said; /quit, or the end of the input, leaves. The node keeps what was
said while somebody was away.
"""

from __future__ import annotations

import sys

import anyio
from anyio import to_thread

from gossamer.client import Client, NodeError, open_client


async def listen(node: Client, who: str, room: str) -> None:
    """Print what is said in the room, and where somebody mentions this one."""
    here = f'room == "{room}"'
    mentioned = f'text contains "@{who}"'
    async with node.subscribe(f"({here} or {mentioned})", name=f"chat {who}") as lines:
        print(f"* {who} is in {room}", flush=True)
        async for line in lines:
            said = line.values
            if said["who"] != who:
                place = "" if said["room"] == room else f" in {said['room']}"
                print(f"{said['who']}{place}: {said['text']}", flush=True)
            await lines.acknowledge(line)


async def say(node: Client, who: str, room: str) -> None:
    """Say what is typed."""
    while True:
        line = await to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
        text = line.strip()
        if not line or text == "/quit":
            return
        if not text:
            continue
        try:
            await node.publish({"room": room, "who": who, "text": text})
        except NodeError as error:
            print(f"* not said for sure: {error}", flush=True)


async def main(folder: str, who: str, room: str) -> None:
    async with open_client(folder) as node, anyio.create_task_group() as tasks:
        tasks.start_soon(listen, node, who, room)
        await say(node, who, room)
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: chat.py FOLDER WHO ROOM")
    anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3])
