"""`gossamer advertise`, `unsub` and `batch`: what clients of a broker ask for and announce."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import trio
from attrs import frozen

from gossamer.client.errors import unwrapped
from gossamer.node.commands.folder import address_of
from gossamer.node.errors import CommandError, ConfigurationError, NodeError, TransportBroken
from gossamer.node.local.client import LocalClient, open_client
from gossamer.protocol.content import filters
from gossamer.protocol.kernel.errors import ExpressionError, ProtocolError

# Batch files: one operation of a client a line, all of them read before any is carried out.
#
# # what follows a number sign at the beginning of a line is ignored
# advertise quotes present(symbol) and price > 0
# subscribe cheap symbol == "IBM" and price < 120.5
# publish symbol = "IBM", price = 81.5
# publish [symbol,'IBM'],[price,81.5]
# unsubscribe cheap
# unadvertise quotes


MAX_BYTES: Final = 64 << 20
_LINE: Final = re.compile(r"\s*(?P<word>\S+)(?:\s+(?P<rest>.*\S))?\s*")
_LABELLED: Final = re.compile(r"(?P<label>\S+)(?:\s+(?P<text>.*))?")


@frozen
class Operation:
    """An operation and where it stands.

    Attributes:
        line: of the file, from 1.
        carry_out: does it.
    """

    line: int
    carry_out: Callable[[LocalClient], Awaitable[object]]


@frozen
class _Part:
    """A part of a line and the column where it begins."""

    text: str
    column: int


def read_batch(path: Path) -> list[Operation]:
    """The operations of a file, none of which has been carried out.

    Raises:
        ConfigurationError: the file cannot be read.
        CommandError: a line is no operation.
    """
    try:
        raw = path.read_bytes()[: MAX_BYTES + 1]
    except OSError as error:
        found = f"unreadable ({error.strerror or error})"
        raise ConfigurationError("", "the batch file", path, "a file", found) from None
    if len(raw) > MAX_BYTES:
        expected = f"at most {MAX_BYTES} bytes"
        raise ConfigurationError("", "the batch file", path, expected, "longer than that")
    operations = []
    for number, line in enumerate(raw.removeprefix(codecs.BOM_UTF8).split(b"\n"), 1):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise _refused(path, number, error.start + 1, "this is no UTF-8 text") from None
        if text.strip() and not text.lstrip().startswith("#"):
            operations.append(Operation(number, _read_line(path, number, text)))
    return operations


def _read_line(path: Path, number: int, line: str) -> Callable[[LocalClient], Awaitable[object]]:
    found = _LINE.fullmatch(line)
    assert found is not None, "it is not empty"
    word = found["word"]
    if word not in _OPERATIONS:
        expected = f"expected one of {', '.join(_OPERATIONS)}, found {word[:40]!r}"
        raise _refused(path, number, found.start("word") + 1, expected)
    start = found.start("rest") if found["rest"] else found.end("word")
    rest = _Part(found["rest"] or "", start + 1)
    try:
        return _OPERATIONS[word](rest)
    except _LineError as error:
        raise _refused(path, number, error.column, error.reason) from None


def _refused(path: Path, line: int, column: int, reason: str) -> CommandError:
    return CommandError(f"{path}, line {line}, column {column}: {reason}; nothing was done")


class _LineError(Exception):
    def __init__(self, column: int, reason: str) -> None:
        self.column, self.reason = column, reason
        super().__init__(reason)


def _label(rest: _Part) -> str:
    found = _LABELLED.fullmatch(rest.text)
    if found is None:
        raise _LineError(rest.column, "expected a label")
    if found["text"]:
        raise _LineError(rest.column + found.start("text"), "expected nothing after the label")
    return found["label"]


def _labelled_filter(rest: _Part) -> tuple[str, str]:
    found = _LABELLED.fullmatch(rest.text)
    if found is None or not found["text"]:
        column = rest.column + len(rest.text)
        raise _LineError(column, "expected a label and a filter, such as: cheap price < 120.5")
    _checked(filters.parse, found["text"], rest.column + found.start("text"))
    return found["label"], found["text"]


def _checked(
    parse: Callable[[str], dict[str, object] | filters.Filter], text: str, column: int
) -> dict[str, object] | filters.Filter:
    try:
        return parse(text)
    except ExpressionError as error:
        raise _LineError(column + error.column - 1, error.reason) from None
    except RecursionError:
        raise _LineError(column, "this is nested too deeply") from None


def _subscribe(rest: _Part) -> Callable[[LocalClient], Awaitable[object]]:
    label, text = _labelled_filter(rest)
    return lambda client: client.subscribe(label, text)


def _advertise(rest: _Part) -> Callable[[LocalClient], Awaitable[object]]:
    label, text = _labelled_filter(rest)
    return lambda client: client.advertise(label, text)


def _unsubscribe(rest: _Part) -> Callable[[LocalClient], Awaitable[object]]:
    label = _label(rest)
    return lambda client: client.unsubscribe(label)


def _unadvertise(rest: _Part) -> Callable[[LocalClient], Awaitable[object]]:
    label = _label(rest)
    return lambda client: client.unadvertise(label)


def _publish(rest: _Part) -> Callable[[LocalClient], Awaitable[object]]:
    values = _checked(filters.parse_publication, rest.text, rest.column)
    assert isinstance(values, dict)
    return lambda client: client.publish(values)


_OPERATIONS: Final = {
    "advertise": _advertise,
    "unadvertise": _unadvertise,
    "subscribe": _subscribe,
    "unsubscribe": _unsubscribe,
    "publish": _publish,
}


# Operations after which a bar is drawn anew.
SHOWN: Final = 100

# Of an operation that was under way when the connection or the command ended.
UNKNOWN: Final = "it is not known whether this was done"


@frozen(kw_only=True)
class Whose:
    """A client and one of its labels.

    Attributes:
        name: of the client.
        label: what it calls what it asks for or announces.
    """

    name: str
    label: str


def advertise(folder: Path | None, whose: Whose, filter_text: str) -> None:
    """Announce what a client will publish; returns once its broker has stored that.

    Raises:
        NodeError: no broker runs there, or it refuses.
    """
    _with_client(folder, whose.name, lambda one: one.advertise(whose.label, filter_text))


def unadvertise(folder: Path | None, whose: Whose) -> None:
    """Take an advertisement back; raises as `advertise` does."""
    _with_client(folder, whose.name, lambda one: one.unadvertise(whose.label))


def unsubscribe(folder: Path | None, whose: Whose) -> None:
    """Take a subscription back; raises as `advertise` does."""
    _with_client(folder, whose.name, lambda one: one.unsubscribe(whose.label))


def run_batch(folder: Path | None, name: str | None, file: Path) -> str:
    """Carry out the operations of a file; returns what was done, in words.

    Raises:
        CommandError: a line is no operation, and nothing was done; or the broker refused one, or
            went away, and those before it were done.
        NodeError: no broker runs there.
    """
    operations = read_batch(file)
    begun: list[Operation] = []

    async def run() -> str:
        async with open_client(address_of(folder), name, aside=True, patience_s=0) as client:
            with _progress(len(operations)) as show:
                await _carry_out(client, operations, file, begun, show)
        return f"done: {len(operations)} lines of {file}"

    try:
        with unwrapped():
            return trio.run(run)
    except KeyboardInterrupt:
        if begun:
            stopped = _stopped(file, begun[-1].line, UNKNOWN, len(begun) - 1)
            print(f"gossamer: {stopped}", file=sys.stderr)
        raise


async def _carry_out(
    client: LocalClient,
    operations: Sequence[Operation],
    file: Path,
    begun: list[Operation],
    show: Callable[[int], None],
) -> None:
    """Carry out operations; each is added to ``begun`` before."""
    for done, one in enumerate(operations):
        begun.append(one)
        try:
            await one.carry_out(client)
        except TransportBroken as error:
            raise _stopped(file, one.line, f"{error}; {UNKNOWN}", done) from None
        except (NodeError, ProtocolError) as error:
            raise _stopped(file, one.line, str(error), done) from None
        if done % SHOWN == 0:
            show(done)


def _stopped(file: Path, line: int, reason: str, done: int) -> CommandError:
    """An operation was refused, or interrupted; so many before it were carried out."""
    words = {0: "nothing was done", 1: "the operation before it was done"}
    before = words.get(done, f"the {done} operations before it were done")
    return CommandError(f"{file}, line {line}: {reason}; {before}")


def _with_client(
    folder: Path | None, name: str, work: Callable[[LocalClient], Awaitable[None]]
) -> None:
    async def run() -> None:
        async with open_client(address_of(folder), name, aside=True, patience_s=0) as client:
            await work(client)

    with unwrapped():
        trio.run(run)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """Shows how many were done, where somebody is looking and it takes a while."""
    if not sys.stderr.isatty() or total < SHOWN:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("operations", total=total)
        yield lambda done: progress.update(task, completed=done)
