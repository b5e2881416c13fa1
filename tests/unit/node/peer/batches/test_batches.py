"""When compiled rules are loaded, what is not run, and which frames go by a batch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import cbor2
import pytest
import trio

from gossamer.compiled.store import FolderStore
from gossamer.node.config.broker import ALWAYS, AUTO, NEVER
from gossamer.node.errors import BadFrame
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.batches import machine_code
from gossamer.node.peer.batches.event_batches import (
    BUSY_LOOKS,
    BUSY_RATE,
    BUSY_SHARE,
    LOOK_AGAIN_S,
    LOOKS,
    LOOKS_S,
    Tiers,
)
from gossamer.node.peer.batches.exchange import Exchange
from gossamer.node.peer.batches.machine_code import EVENTS, STEPS, Made
from gossamer.node.peer.frames.core import SELF, Core, Record
from gossamer.node.peer.frames.event_frames import event_frame, read_event_frame
from gossamer.node.transport.limits import HEADER_BYTES
from gossamer.protocol.kernel.linking import LinkedCode
from gossamer.protocol.kernel.records import BODY
from gossamer.protocol.kernel.struct import WORD_BYTES
from gossamer.protocol.peer.record_table.records import EVENT, PUBLISH
from gossamer.protocol.peer.settings import presets
from support.switching_ways import InterpretedRules
from support.waiting import running


@pytest.fixture
def supply(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked for; there is no code until some is made."""
    asked: list[str] = []

    def load(part: str) -> object:
        asked.append(f"load {part}")
        return object() if f"make {part}" in asked else None

    def make(part: str) -> Made:
        asked.append(f"make {part}")
        return Made.HERE

    async def at_once(work: Callable[[str], object], part: str, **_: object) -> object:
        # The clock that jumps does not wait for threads.
        return work(part)

    monkeypatch.setattr(trio.to_thread, "run_sync", at_once)
    monkeypatch.setattr(machine_code, "load", load)
    monkeypatch.setattr(machine_code, "make", make)
    return asked


async def ran_for(choice: str, seconds: float, rate: float, share: float = 0.0) -> list[str]:
    """The parts that a peer took into use that runs so long, and takes so many frames a second.

    After a second it takes that share of a processor's time.
    """
    counters, used = Counters(), list[str]()

    def used_s() -> float:
        return share * max(0.0, trio.current_time() - LOOKS_S)

    use = {part: lambda _, part=part: used.append(part) for part in (EVENTS, STEPS)}
    tiers = Tiers(choice, counters, use, used_s)
    with trio.move_on_after(seconds):
        async with running(tiers.run):
            while True:
                await trio.sleep(LOOKS_S / 10)
                counters.frames_received += round(rate * LOOKS_S / 10)
    assert tiers.compiled == (EVENTS in used)
    return used


async def test_a_busy_peer_has_code_made_and_uses_it(supply: list[str]) -> None:
    """It is busy if it works much, whatever it takes."""
    assert not await ran_for(AUTO, 30, BUSY_RATE / 2)
    assert not await ran_for(AUTO, 30, 1, BUSY_SHARE / 2)
    assert not await ran_for(AUTO, BUSY_LOOKS * LOOKS_S, 1, 2 * BUSY_SHARE)
    assert not supply
    assert await ran_for(AUTO, 30, 2 * BUSY_RATE) == [EVENTS, STEPS]
    made = [f"{what} {part}" for part in (EVENTS, STEPS) for what in ("load", "make", "load")]
    assert supply == made
    supply.clear()
    assert await ran_for(AUTO, 2 * LOOKS * LOOKS_S, 1, 2 * BUSY_SHARE) == [EVENTS, STEPS]
    assert supply == made


@pytest.mark.parametrize(("choice", "used"), [(ALWAYS, 2), (NEVER, 0)])
async def test_it_is_used_always_or_never(supply: list[str], choice: str, used: int) -> None:
    assert len(await ran_for(choice, 30, 2 * BUSY_RATE * (choice == NEVER))) == used
    assert bool(supply) == bool(used)


async def test_code_of_another_is_used(supply: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def make(part: str) -> Made:
        supply.append("look")
        if supply.count("look") > 3:
            supply.append(f"make {part}")
        return Made.ELSEWHERE

    monkeypatch.setattr(machine_code, "make", make)
    assert await ran_for(ALWAYS, 3.5 * LOOK_AGAIN_S, 0) == []
    assert supply.count("look") == 4
    assert await ran_for(ALWAYS, 9 * LOOK_AGAIN_S, 0) == [EVENTS, STEPS]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GOSSAMER_CACHE", str(tmp_path))
    made = tmp_path / "native"
    made.mkdir(mode=0o700)
    return made


HOLDER = """
import sys
from pathlib import Path
from gossamer.compiled.store import FolderStore

with FolderStore(Path(sys.argv[1])).making(sys.argv[2]):
    print("makes", flush=True)
    sys.stdin.read()
"""


def test_a_process_makes_code_for_all_and_nobody_waits_beside_it(folder: Path) -> None:
    """Nodes that are started again and again meanwhile would leave a process each."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), machine_code.code_name(EVENTS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"makes\n"
        assert machine_code.make(EVENTS) is Made.ELSEWHERE
        command = [sys.executable, "-m", "gossamer.node.peer.batches.making", EVENTS]
        done = subprocess.run(command, timeout=60, check=False)
        assert done.returncode == machine_code.MADE_ELSEWHERE
        assert list(folder.iterdir()) == []
        holder.communicate()


def keep(folder: Path, content: bytes) -> None:
    FolderStore(folder).save(machine_code.code_name(EVENTS), content)


def told(content: object) -> bytes:
    symbols = {"scan": "scan", "take": "take"}
    return cbor2.dumps({"object": content, "symbols": symbols, "called": []})


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", told(b""), told(b"no object code"), told(b"\x7fELF"), told(7), cbor2.dumps([])],
)
def test_what_is_no_code_is_not_run(folder: Path, content: bytes) -> None:
    keep(folder, content)
    assert machine_code.load(EVENTS) is None


def test_peers_of_a_process_share_sound_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    linked: list[bytes] = []

    class Linked(LinkedCode):
        def __init__(self, content: bytes, *_: object) -> None:
            linked.append(content)

    monkeypatch.setattr(machine_code, "LinkedCode", Linked)
    keep(folder, told(b"code"))
    first = machine_code.load(EVENTS)
    assert first is not None
    assert machine_code.load(EVENTS) is first
    keep(folder, told(b"other"))
    other = machine_code.load(EVENTS)
    assert isinstance(other, Linked)
    assert other is not first
    folder.chmod(0o770)
    assert machine_code.load(EVENTS) is None
    folder.chmod(0o700)
    (path,) = folder.glob("*.code")
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert machine_code.load(EVENTS) is None
    assert linked == [b"code", b"other"]


# Batches

MOST = 1 << 16
NEIGHBOUR = 5


@pytest.fixture
def core() -> Core:
    return Core(presets.resilient(2, pending_publications=4), 1)


def as_frame(kind: int, record: Record) -> bytes:
    words = b"".join(word.to_bytes(WORD_BYTES, "little", signed=True) for word in record[BODY:])
    return event_frame(kind, words, b"name", b"values")


@pytest.mark.parametrize(
    ("kind", "source", "goes"),
    [
        (EVENT, NEIGHBOUR, True),
        (EVENT, SELF, False),
        (PUBLISH, SELF, True),
        (PUBLISH, NEIGHBOUR, False),
    ],
)
def test_commands_come_from_here_alone(core: Core, kind: int, source: int, goes: bool) -> None:
    exchange = Exchange(core, InterpretedRules)
    exchange.load(as_frame(kind, core.publish(7, [1])))
    rows = exchange.scan(source, MOST)
    assert [row.kind for row in rows] == ([kind] if goes else [])


def test_an_event_that_is_published_is_no_frame_of_others_and_not_new(core: Core) -> None:
    frame = as_frame(PUBLISH, core.publish(7, [1]))
    with pytest.raises(BadFrame, match="kind"):
        read_event_frame(frame[HEADER_BYTES:])
    exchange = Exchange(core, InterpretedRules)
    exchange.load(frame)
    assert len(exchange.scan(SELF, MOST)) == 1
    exchange.name(0, SELF)
    taken, written = exchange.take(0, 1)
    assert taken == 1
    assert written, "alone, it is its own rendezvous node"
    assert not exchange.is_new(0)
