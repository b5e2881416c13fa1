"""A systemd service: runs a command for each event that matches, with the event on its input.

    python examples/node/on_event.py demo/peer1 'price > 80' -- logger --tag quotes

As a service of the user it is `on-event.service`, beside this file. Events are acknowledged once
the command has ended well, so that none is lost when the machine restarts; one whose command fails
is tried again after a pause, and given up after five attempts, with a line that says so. The
service tells systemd when it is ready, and that it is alive (`Type=notify`, `WatchdogSec`).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from types import FrameType

from gossamer.client import NodeError, ReceivedEvent, connect

ATTEMPTS = 5
PAUSE_S = 2.0


def tell_systemd(words: str) -> None:
    """Send words to the service manager, where there is one; one that does not read is not told."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
        to.setblocking(False)
        to.connect(f"\0{address[1:]}" if address.startswith("@") else address)
        with suppress(BlockingIOError):
            to.sendall(words.encode())


def stay_alive(stopped: threading.Event) -> None:
    """Tell systemd in time, twice as often as it asks for."""
    interval_s = int(os.environ.get("WATCHDOG_USEC", "0")) / 2e6
    while interval_s > 0 and not stopped.wait(interval_s):
        tell_systemd("WATCHDOG=1")


def plain(value: object) -> object:
    """A value as JSON has it; what it has no word for is text."""
    return value if isinstance(value, str | int | float) else str(value)


def deal_with(event: ReceivedEvent, command: list[str], pause_s: float) -> None:
    """Run the command until it ends well, or has failed too often."""
    values = {name: plain(one) for name, one in event.values.items()}
    text = json.dumps({"id": event.id, "published_at": event.published_at, "values": values})
    for attempt in range(1, ATTEMPTS + 1):
        code = subprocess.run(command, input=text, text=True, check=False).returncode
        if code == 0:
            return
        print(f"{event.id}: attempt {attempt} ended with {code}", file=sys.stderr, flush=True)
        time.sleep(pause_s)
    print(f"{event.id}: given up: {text}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("wanted")
    parser.add_argument("--name", default="on-event")
    parser.add_argument("--pause", type=float, default=PAUSE_S)
    parser.add_argument("command", nargs="+", help="after --")
    given = parser.parse_args()

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    stopped = threading.Event()
    watchdog = threading.Thread(target=stay_alive, args=(stopped,), daemon=True)
    try:
        with connect(given.folder) as node, node.subscribe(given.wanted, name=given.name) as events:
            tell_systemd(f"READY=1\nSTATUS=waiting for {given.wanted}")
            watchdog.start()
            for event in events:
                deal_with(event, given.command, given.pause)
                events.acknowledge(event)
    except NodeError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        tell_systemd("STOPPING=1")
    finally:
        stopped.set()


if __name__ == "__main__":
    main()
