"""A work queue: workers share jobs, and what one leaves behind another one does.

    gossamer node init jobs --peers 2 --port 7785 --schema examples/node/jobs.toml
    gossamer node run jobs/peer1 jobs/peer2
    python examples/node/work_queue.py work jobs/peer1 upper -- tr a-z A-Z
    python examples/node/work_queue.py submit jobs/peer2 upper README.md LICENSE --out done

A job is a file, whose bytes are the event's payload; a worker runs its command with them on its
input. It publishes what the command prints, and acknowledges the job only then, so that a worker
that is killed, or whose machine is, leaves its job to another one of the group. A job whose command
fails is tried again, and then its result says so. A job can be done twice (its worker was cut off,
say, when it was done), so the first result counts: have commands that may run twice.

Results are last values by job: whoever asks for them later gets them too, for an hour. Workers of
large jobs beside others of small ones: give them sizes that do not overlap (`--from`, `--below`),
as each range is a group of its own.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gossamer.client import (
    BlockingClient,
    LastMark,
    NodeError,
    Payload,
    PublicationUncertainError,
    ReceivedEvent,
    UnacknowledgedError,
    connect,
)

LARGEST = 40_000
LASTS_S = 3600.0
# Between two attempts, and after how long a submitter asks anew for results that it has missed.
PAUSE_S = 1.0
LOOK_S = 5.0


def publish_surely(
    node: BlockingClient,
    values: dict[str, object],
    payload: Payload,
    last: LastMark | None = None,
) -> None:
    """Publish until it is acknowledged; the event may come more than once then."""
    while True:
        try:
            node.publish(values, payload=payload, last=last)
            return
        except (PublicationUncertainError, UnacknowledgedError):
            time.sleep(PAUSE_S)


def run(command: Sequence[str], data: bytes, attempts: int) -> tuple[str, bytes]:
    """What becomes of a job, and what its command printed, at most the end of it."""
    printed = b""
    for attempt in range(1, attempts + 1):
        done = subprocess.run(command, input=data, capture_output=True, check=False)
        if done.returncode == 0:
            return "done", done.stdout[-LARGEST:]
        printed = done.stderr[-LARGEST:] or f"exit code {done.returncode}".encode()
        if attempt < attempts:
            time.sleep(PAUSE_S)
    return "failed", printed


def work(
    folder: str, queue: str, sizes: tuple[int, int], command: Sequence[str], attempts: int
) -> None:
    """Do jobs until stopped; the one that is under way goes to another worker then."""
    wanted = f'queue == "{queue}" and state == "waiting" and {sizes[0]} <= size < {sizes[1]}'
    with connect(folder) as node, node.subscribe(wanted, group=queue) as jobs:
        print("waiting for jobs", flush=True)
        for event in jobs:
            data = b"" if event.payload is None else event.payload.data
            state, printed = run(command, data, attempts)
            result = dict(event.values) | {"state": state}
            publish_surely(node, result, Payload(printed), LastMark("job", LASTS_S))
            jobs.acknowledge(event)
            print(f"{event.values['job']} {state}", flush=True)


def submit(folder: str, queue: str, files: Sequence[Path], out: Path | None) -> int:
    """Have files worked on; print what became of each, and return how many failed."""
    batch = uuid.uuid4().hex[:12]
    waiting = {f"{batch}/{number}": file for number, file in enumerate(files)}
    failed = 0
    with connect(folder) as node:
        for job, file in waiting.items():
            data = file.read_bytes()
            if len(data) > LARGEST:
                sys.exit(f"{file} has {len(data)} bytes, expected {LARGEST} at most")
            values = {"queue": queue, "job": job, "size": len(data), "state": "waiting"}
            publish_surely(node, values, Payload(data))
        while waiting:
            for result in results_of(node, queue, batch):
                done = waiting.pop(str(result.values["job"]), None)
                if done is not None:
                    failed += result.values["state"] == "failed"
                    keep(done, result, out)
                if not waiting:
                    break
    return failed


def results_of(node: BlockingClient, queue: str, batch: str) -> list[ReceivedEvent]:
    """The results that there are, once there are new ones or some time has passed."""
    wanted = f'queue == "{queue}" and state != "waiting" and job startswith "{batch}/"'
    found: list[ReceivedEvent] = []
    with node.subscribe(wanted, last=True) as results, suppress(TimeoutError):
        found.append(results.receive(LOOK_S))
        while True:
            found.append(results.receive(0.2))
    return found


def keep(file: Path, result: ReceivedEvent, out: Path | None) -> None:
    """Print what became of a file, and write what its command printed."""
    data = b"" if result.payload is None else result.payload.data
    print(f"{file.name} {result.values['state']}", flush=True)
    if result.values["state"] == "failed":
        sys.stderr.write(f"{file.name}: {data.decode(errors='replace')}\n")
    elif out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / file.name).write_bytes(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = parser.add_subparsers(dest="part", required=True)
    one = parts.add_parser("work")
    one.add_argument("folder")
    one.add_argument("queue")
    one.add_argument("--from", dest="least", type=int, default=0)
    one.add_argument("--below", type=int, default=LARGEST + 1)
    one.add_argument("--attempts", type=int, default=3)
    one.add_argument("command", nargs="+", help="after --")
    one = parts.add_parser("submit")
    one.add_argument("folder")
    one.add_argument("queue")
    one.add_argument("files", nargs="+", type=Path)
    one.add_argument("--out", type=Path)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if given.part == "work":
            sizes = (given.least, given.below)
            work(given.folder, given.queue, sizes, given.command, given.attempts)
        else:
            sys.exit(1 if submit(given.folder, given.queue, given.files, given.out) else 0)
    except NodeError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
