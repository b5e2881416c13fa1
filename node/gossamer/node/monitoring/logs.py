"""Structured logs on standard error: key=value for people, JSON lines for programs.

Events are constant sentences in lower case; what varies is in the fields. Nothing secret is ever
written: fields whose names say that they are secret, bytes, and text that looks like a private
key or a join token are hidden, whoever logs them. A warning that repeats is written once in a
while with the number of repetitions, and no event is written more often than so many times in that
while, so that a flooding peer cannot fill a disk. A full disk, in turn, costs log lines and never
the process.

All of it goes through the standard library's logging, under the name ``gossamer``: an application
with a peer of its own gets the logs where it has them.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, MutableMapping
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import attrs

Event = MutableMapping[str, Any]

HIDDEN: Final = "(hidden)"
MAX_TEXT: Final = 300
MAX_TRACEBACK: Final = 8000
MAX_ITEMS: Final = 16
MAX_DEPTH: Final = 3

# Different warnings whose repetitions are counted at a time; the oldest is forgotten first.
REPEATS_REMEMBERED: Final = 256
MORE: Final = "more like this"
# Lines of one event in the interval of repetitions: more than a cluster of some dozens of peers has
# to say of each when it starts.
EVENT_LINES: Final = 200

# Names of fields that hold secrets. "key" does not: a peer's permanent key is public.
_SECRET_NAME: Final = re.compile(
    r"token|secret|passw|passphrase|private|credential|authorization|cookie|pem", re.IGNORECASE
)
# PEM, join tokens, and 32 bytes or more in hexadecimal or base64, as raw keys are written.
_SECRET_TEXT: Final = re.compile(
    r"-----BEGIN.*|gossamer1-\w+|\b[0-9a-fA-F]{64,}\b|[\w+/-]{43}=", re.DOTALL
)
_PLAIN: Final = re.compile(r"[\w.:/@%+\[\]-]+", re.ASCII)


class NodeLog:
    """Takes events and their fields to a logger of the standard library."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def info(self, event: str, **fields: object) -> None:
        """Say what is going on."""
        self._log(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Say what went wrong and was dealt with."""
        self._log(logging.WARNING, event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Say what went wrong."""
        self._log(logging.ERROR, event, fields)

    def exception(self, event: str, **fields: object) -> None:
        """Say what went wrong, and all of the exception that is being handled."""
        self._log(logging.ERROR, event, fields, with_exception=True)

    def _log(
        self, level: int, event: str, fields: dict[str, object], with_exception: bool = False
    ) -> None:
        self._logger.log(level, event, extra={"fields": fields}, exc_info=with_exception)


log: Final = NodeLog(logging.getLogger("gossamer"))


def configure_logs(
    level: str = "info",
    format: str = "auto",
    repeat_s: float = 60.0,
    name: str = "",
    event_lines: int = EVENT_LINES,
    *,
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Repetitions:
    """Send the logs of this process, those of libraries included, to ``stream``.

    Args:
        level: debug, info, warning or error; what is less important is not written.
        format: text, json, or auto for text on a terminal and JSON elsewhere.
        repeat_s: seconds in which a repeated warning is counted instead of written.
        name: of the node, said in every line; "" for none.
        event_lines: how often an event is written in ``repeat_s``, whatever its level and fields.
        stream: standard error by default.
        clock: seconds, never going back; for ``repeat_s``.

    Returns:
        Call its `flush` now and then and at the end, for repetitions not yet told.
    """
    stream = sys.stderr if stream is None else stream
    text = format == "text" or (format == "auto" and stream.isatty())
    repetitions = Repetitions(repeat_s, clock, event_lines)
    handler = _Handler(stream, as_text if text else as_json, repetitions, name)
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    return repetitions


class Repetitions:
    """Lets a warning through once in a while, and any event so often, and counts the others.

    Warnings are the same if event, cause and peer are. Events are counted by their names alone, as
    causes may differ without end.
    """

    def __init__(
        self, interval_s: float, clock: Callable[[], float], event_lines: int = EVENT_LINES
    ) -> None:
        self._interval_s = interval_s
        self._clock = clock
        self._event_lines = event_lines
        self._seen: OrderedDict[tuple[str, str, str], _Lines] = OrderedDict()
        # Names of events are those that are in the sources: a bounded number.
        self._events: dict[str, _Lines] = {}

    def admit(self, event: Event) -> bool:
        """Whether ``event`` is to be written; it is told how many were left out before it."""
        if event["event"] == MORE:
            return True
        now = self._clock()
        kind = (str(event["event"]), str(event.get("cause", "")), str(event.get("peer", "")))
        repeats = event["level"] in ("warning", "error")
        seen = self._seen.get(kind) if repeats else None
        if seen is not None and now - seen.began < self._interval_s:
            seen.left_out += 1
            return False
        if not self._has_room(kind[0], now):
            return False
        if seen is not None and seen.left_out:
            event["more_like_this"] = seen.left_out
        if repeats:
            self._seen[kind] = _Lines(now)
            if len(self._seen) > REPEATS_REMEMBERED:
                self._tell(*self._seen.popitem(last=False))
        return True

    def _has_room(self, name: str, now: float) -> bool:
        """Whether one more line of an event may be written; those that may not are counted."""
        lines = self._events.get(name)
        if lines is None or now - lines.began >= self._interval_s:
            self._events[name] = _Lines(now)
            if lines is not None:
                self._tell((name, "", ""), lines)
            return True
        if lines.written >= self._event_lines:
            lines.left_out += 1
            return False
        lines.written += 1
        return True

    def flush(self) -> None:
        """Write how many of each warning and event were left out, and forget those long ago."""
        now = self._clock()
        for kind, seen in list(self._seen.items()):
            self._tell(kind, seen)
            if now - seen.began >= self._interval_s:
                del self._seen[kind]
        for name, lines in list(self._events.items()):
            self._tell((name, "", ""), lines)
            if now - lines.began >= self._interval_s:
                del self._events[name]

    def _tell(self, kind: tuple[str, str, str], counted: _Lines) -> None:
        if counted.left_out:
            named = zip(("cause", "peer"), kind[1:], strict=True)
            fields = {name: value for name, value in named if value}
            log.warning(MORE, of=kind[0], count=counted.left_out, **fields)
            counted.left_out = 0


@attrs.define
class _Lines:
    began: float
    written: int = 1
    left_out: int = 0


def hide_secrets(event: Event) -> Event:
    """The event without what is secret, and with what is long shortened."""
    return {
        name: HIDDEN if _SECRET_NAME.search(name) else _shown(name, value, 0)
        for name, value in event.items()
    }


def as_json(event: Event) -> str:
    """One line for programs."""
    return json.dumps(event)


def as_text(event: Event) -> str:
    """One line for people; nothing in it steers the terminal."""
    parts = [event.pop("timestamp", ""), f"{event.pop('level', ''):<7}"]
    node = event.pop("node", "")
    parts += [f"[{node}]" if node else "", event.pop("event", "")]
    trace = event.pop("exception", None)
    parts += [f"{name}={_quoted(value)}" for name, value in event.items()]
    line = " ".join(_printable(str(part)) for part in parts if part)
    return line if trace is None else f"{line}\n{_printable(str(trace), keep=chr(10))}"


def _shown(name: str, value: object, depth: int) -> object:
    if isinstance(value, bool | int | float) or value is None:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return f"({len(value)} bytes)"
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return _shown_all(name, value, depth) if depth < MAX_DEPTH else "(nested too deeply)"
    text = _SECRET_TEXT.sub(HIDDEN, str(value))
    limit = MAX_TRACEBACK if name == "exception" else MAX_TEXT
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def _shown_all(name: str, values: Any, depth: int) -> object:
    if isinstance(values, Mapping):
        some = list(values.items())[:MAX_ITEMS]
        return {
            str(key): HIDDEN if _SECRET_NAME.search(str(key)) else _shown(name, value, depth + 1)
            for key, value in some
        }
    listed = [_shown(name, value, depth + 1) for value in list(values)[:MAX_ITEMS]]
    return [*listed, f"({len(values)} in all)"] if len(values) > MAX_ITEMS else listed


def _quoted(value: object) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else repr(text)


def _printable(text: str, keep: str = "") -> str:
    return "".join(c if c.isprintable() or c in keep else f"\\x{ord(c):02x}" for c in text)


class _Handler(logging.Handler):
    def __init__(
        self,
        stream: TextIO,
        as_line: Callable[[Event], str],
        repetitions: Repetitions,
        node: str,
    ) -> None:
        super().__init__()
        self._stream = stream
        self._as_line = as_line
        self._repetitions = repetitions
        self._node = node

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line. Losing one is better than stopping the node."""
        event = _event_of(record)
        if not self._repetitions.admit(event):
            return
        if self._node:
            event["node"] = self._node
        event["timestamp"] = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        if record.exc_info and record.exc_info[0] is not None:
            event["exception"] = _EXCEPTIONS.formatException(record.exc_info)
        try:
            self._stream.write(self._as_line(hide_secrets(event)) + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # a full disk, a closed pipe, a closed stream
            return


_EXCEPTIONS: Final = logging.Formatter()


def _event_of(record: logging.LogRecord) -> Event:
    level = record.levelname.lower()
    fields: Mapping[str, object] | None = getattr(record, "fields", None)
    if fields is not None:
        return {**fields, "event": record.msg, "level": level}
    try:
        said = record.getMessage()
    except (TypeError, ValueError):  # the library's arguments do not fit its format
        said = str(record.msg)
    event = {"event": "library says", "cause": said, "library": record.name}
    return {**event, "level": level}
