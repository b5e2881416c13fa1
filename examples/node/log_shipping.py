"""Log shipping: a handler of the standard library's logging publishes, a collector keeps.

    gossamer node init logs --peers 2 --port 7775 --schema examples/node/logs.toml
    gossamer node run logs/peer1 logs/peer2
    python examples/node/log_shipping.py collect logs/peer1 /var/tmp/errors.jsonl --level ERROR
    python examples/node/log_shipping.py try logs/peer2

A program adds `GossamerHandler(folder, service)` to its logger and goes on: records wait in a queue
of bounded length, are published in batches by a thread, and are counted where there is no room. The
collector writes each record before it acknowledges it, so that none is lost when it is killed; one
that was written and not acknowledged is recognised by its id when it comes again.
"""

from __future__ import annotations

import argparse
import json
import logging
import queue
import threading
from pathlib import Path

from gossamer.client import NodeError, connect

WAITING = 10_000
BATCH = 200
LONGEST = 2000
END = None


class GossamerHandler(logging.Handler):
    """Publishes records; `close` waits until those that wait are published.

    Attributes:
        dropped: records for which there was no room, or that nobody acknowledged.
    """

    def __init__(self, folder: str, service: str) -> None:
        super().__init__()
        self.dropped = 0
        self._folder, self._service = folder, service
        self._waiting: queue.Queue[dict[str, object] | None] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._publish, daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Have a record published soon; the program does not wait."""
        level = min(record.levelno, 100)
        message = self.format(record)[:LONGEST]
        try:
            self._waiting.put_nowait({"service": self._service, "level": level, "message": message})
        except queue.Full:
            self.dropped += 1

    def close(self) -> None:
        """Publish what waits, and end."""
        self._waiting.put(END)
        self._thread.join()
        super().close()

    def _publish(self) -> None:
        with connect(self._folder) as node:
            ended = False
            while not ended:
                batch = [self._waiting.get()]
                while len(batch) < BATCH and not self._waiting.empty():
                    batch.append(self._waiting.get())
                ended = END in batch
                records = [one for one in batch if one is not END]
                try:
                    outcomes = node.publish_each(records)
                except NodeError:
                    self.dropped += len(records)
                    continue
                self.dropped += sum(one.fate != "acknowledged" for one in outcomes)


def written(file: Path) -> set[str]:
    """The ids of the records that a file has; a last line that was cut off is none."""
    found = set()
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            found.add(json.loads(line)["id"])
        except ValueError:
            continue
    return found


def collect(folder: str, file: Path, level: int, count: int | None) -> None:
    """Append records to a file, each on the disk before it is acknowledged."""
    known = written(file)
    with (
        connect(folder) as node,
        node.subscribe(f"level >= {level}", name=f"collector {file.name}") as records,
        file.open("a", encoding="utf-8") as out,
    ):
        print("collecting", flush=True)
        for record in records:
            if record.id not in known:
                known.add(record.id)
                line = {"id": record.id, "at": record.published_at, **record.values}
                out.write(json.dumps(line) + "\n")
                out.flush()
            records.acknowledge(record)
            if len(known) == count:
                return


def try_out(folder: str) -> None:
    """Log some records through the handler."""
    log = logging.getLogger("shop")
    log.setLevel(logging.INFO)
    handler = GossamerHandler(folder, "shop")
    log.addHandler(handler)
    for number in range(100):
        log.info("order %d came", number)
        if number % 25 == 0:
            log.error("order %d cannot be paid", number)
    log.removeHandler(handler)
    handler.close()
    print(f"dropped: {handler.dropped}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = parser.add_subparsers(dest="part", required=True)
    one = parts.add_parser("collect")
    one.add_argument("folder")
    one.add_argument("file", type=Path)
    one.add_argument("--level", default="INFO", choices=["DEBUG", "INFO", "WARNING", "ERROR"])
    one.add_argument("--count", type=int)
    one = parts.add_parser("try")
    one.add_argument("folder")
    given = parser.parse_args()
    if given.part == "try":
        try_out(given.folder)
    else:
        level = logging.getLevelNamesMapping()[given.level]
        collect(given.folder, given.file, level, given.count)


if __name__ == "__main__":
    main()
