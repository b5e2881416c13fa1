"""Where the machine code of a peer's rules comes from: the user's cache, or it is made anew.

It has two parts, as the first is made in a sixth of the time of the second: the way of events in
batches, and `step`, which takes all other records. Each is named by what it depends on: the sources
of all rules, and the machine. Code that no longer fits is never found; what is damaged, or in a
folder that others may write to, is not taken.
"""

from __future__ import annotations

import enum
import hashlib
import os
import platform
import subprocess
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Final
from weakref import WeakValueDictionary

import cbor2
import numpy as np
import numpy.typing as npt

import gossamer.compiled
import gossamer.node.peer.batches
import gossamer.node.peer.frames
import gossamer.protocol
from gossamer.compiled.store import FolderStore, cache_root
from gossamer.node.peer.frames.core import SELF, Core, Record, Written
from gossamer.protocol.kernel.linking import LinkedCode, Standalone
from gossamer.protocol.kernel.records import CURSORS, TAIL, Outbox
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import Struct
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.state.state import State
from gossamer.protocol.peer.step import largest_step, step

EVENTS, STEPS = "events", "steps"
# By part, the number of arguments of its rules (`exchange.LinkedRules`, `steps.LinkedStep`).
ARGUMENTS: Final[Mapping[str, Mapping[str, int]]] = MappingProxyType(
    {EVENTS: {"scan": 6, "take": 5}, STEPS: {"step": 3}}
)
# Making a part takes ten or sixty seconds of a processor's time, and more where that is busy.
MAKING_S: Final = 3600.0
LOWEST_PRIORITY: Final = 19
# Others may not write here.
OTHERS_WRITE: Final = 0o022
# What the process that makes code ends with, where another one has begun in the meantime.
MADE_ELSEWHERE: Final = 3


class Made(enum.Enum):
    """Who has made a part, if anybody; another process may be at it yet."""

    HERE = enum.auto()
    ELSEWHERE = enum.auto()
    NOT = enum.auto()


# By part and content, what is linked and in use: the peers of a process share it.
_linked: Final[WeakValueDictionary[tuple[str, bytes], LinkedCode]] = WeakValueDictionary()
_linking: Final = Lock()


def load(part: str) -> LinkedCode | None:
    """A part's machine code, linked into this process; None where there is none to be trusted.

    It is linked once, for all who use it. May be called by any thread.
    """
    folder = code_folder()
    if folder is None or not is_ours(folder):
        return None
    content = FolderStore(folder).load(code_name(part))
    if content is None:
        return None
    key = part, hashlib.sha256(content).digest()
    with _linking:
        found = _linked.get(key)
        if found is None:
            found = _link(part, content)
            if found is not None:
                _linked[key] = found
    return found


def _link(part: str, content: bytes) -> LinkedCode | None:
    """What is kept of a part, linked; None of what is no such code."""
    try:
        told = cbor2.loads(content)
        called = [Standalone(*one) for one in told["called"]]
        return LinkedCode(bytes(told["object"]), told["symbols"], ARGUMENTS[part], called)
    except (ValueError, KeyError, TypeError, cbor2.CBORDecodeError):
        return None


def save(
    part: str, content: bytes, symbols: Mapping[str, str], called: Sequence[Standalone]
) -> None:
    """Keep machine code for processes to come; where it cannot be kept nothing happens."""
    folder = code_folder()
    if folder is not None:
        told = {"object": content, "symbols": dict(symbols), "called": list(map(list, called))}
        FolderStore(folder).save(code_name(part), cbor2.dumps(told))


def make(part: str) -> Made:
    """Make a part in a process of its own, at the lowest priority, unless another process does.

    The compiler would take this process 70 MB for good. The process goes on if this one ends, as
    the next start needs the code.
    """
    folder = code_folder()
    if folder is not None:
        with FolderStore(folder).making(code_name(part), waits=False) as elsewhere:
            pass
        if elsewhere:
            return Made.ELSEWHERE
    command = [sys.executable, "-m", "gossamer.node.peer.batches.making", part]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=MAKING_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return Made.NOT
    if done.returncode == MADE_ELSEWHERE:
        return Made.ELSEWHERE
    return Made.HERE if done.returncode == 0 else Made.NOT


def code_folder() -> Path | None:
    """Where it is kept; None for a user without a home."""
    try:
        return cache_root() / "native"
    except RuntimeError:
        return None


def is_ours(folder: Path) -> bool:
    """Whether nobody else may put code there that we would run."""
    try:
        found = folder.stat()
    except OSError:
        return False
    return found.st_uid == os.geteuid() and not found.st_mode & OTHERS_WRITE


@cache
def code_name(part: str) -> str:
    """The name of a part's code for these rules on this machine."""
    told = hashlib.sha256(f"{platform.machine()} {_processor()}".encode())
    for path in _sources():
        told.update(path.name.encode())
        told.update(path.read_bytes())
    return f"{part}-{told.hexdigest()[:40]}"


def _sources() -> Iterator[Path]:
    """Everything that the rules are made of."""
    packages = (
        gossamer.compiled,
        gossamer.protocol,
        gossamer.node.peer.batches,
        gossamer.node.peer.frames,
    )
    for package in packages:
        for folder in sorted(package.__path__):
            yield from sorted(Path(folder).rglob("*.py"))


def _processor() -> str:
    """What the processor can do, since code is made for just that."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            lines = {line.partition(":")[0].strip(): line.strip() for line in file}
    except OSError:
        return platform.processor()
    names = ("model name", "flags", "Features", "CPU part")
    return "; ".join(lines[name] for name in names if name in lines)


# Any record, taken by the protocol's `step` as machine code.


Words = npt.NDArray[np.int64]


class StepBuffers(Struct, shared=True):
    """What `take_one` reads and writes.

    Attributes:
        record: the record that is taken.
        out, cursor: the outbox of `step`.
    """

    record: Words
    out: Words
    cursor: Words


def make_step_buffers(settings: Settings) -> StepBuffers:
    """The buffers of a peer of these settings; the system gives memory to what is written."""
    most = largest_step(settings)
    return StepBuffers(
        # What a peer takes is a part of what some peer wrote.
        record=np.zeros(most, np.int64),
        out=np.zeros(most, np.int64),
        cursor=np.zeros(CURSORS, np.int64),
    )


@rule
def take_one(s: State, b: StepBuffers, now: int) -> int:
    """Let the peer take the record in ``b.record``; return where in ``b.out`` its effects end.

    Args:
        s: the peer's state; changes as by `step`.
        b: the buffers; ``out`` and ``cursor`` are begun anew.
        now: the peer's time in rounds.
    """
    for i in range(b.cursor.shape[0]):
        b.cursor[i] = 0
    step(s, SELF, now, b.record, 0, Outbox(b.out, b.cursor))
    return int(b.cursor[TAIL])


class BufferedStep:
    """Takes the records of one peer by a form of `take_one`.

    Args:
        take_one: that form, with the buffers and the time in rounds.
    """

    def __init__(self, core: Core, take_one: Callable[[StepBuffers, int], object]) -> None:
        self._take_one = take_one
        self._buffers = make_step_buffers(core.settings)
        self._record = self._buffers.record.data.cast("B")
        self._out, self._cursor = self._buffers.out.data, self._buffers.cursor.data

    def take(self, record: Record, now: int) -> Written:
        """Take a record."""
        given = memoryview(array("q", record)).cast("B")
        self._record[: len(given)] = given
        self._take_one(self._buffers, now)
        return self._out, self._cursor


def linked_step(core: Core, code: LinkedCode) -> BufferedStep:
    """Takes records by machine code, which has `step`."""
    call, state = code.function("step"), core.state.block_address()

    def take_one_linked(buffers: StepBuffers, now: int) -> int:
        return call(state, buffers.block_address(), now)

    return BufferedStep(core, take_one_linked)
