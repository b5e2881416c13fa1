"""Files of protocols of one's own, some in versions that differ in one thing or another."""

from __future__ import annotations

import runpy
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from support.checkout import ROOT

PROTOCOLS: Final = ROOT / "tests" / "support" / "protocols"
COOKBOOK: Final = ROOT / "examples" / "cookbook"

HEAD: Final = """\
from gossamer.sim import (control,
    Message, Node, Protocol, Sampler, Timer, column, draw_other, items, layer, measure, setting
)

class Word(Message):
    number: int

"""


def protocol_file(folder: Path, name: str, text: str) -> str:
    """Write a file that begins with imports and the message `Word`; its name with ":Own"."""
    (folder / f"{name}.py").write_text(HEAD + text)
    return f"{name}.py:Own"


def scenario_file(folder: Path, protocol: str, keys: str = "nodes = 20\nrounds = 3\n") -> Path:
    file = folder / "own.toml"
    file.write_text(f'protocol = "{protocol}"\n{keys}')
    return file


MAIN = """
import enum
import sys
from typing import NamedTuple
import numpy as np
import helper
from helper import RATE, adjust
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.kernel.struct import Struct
from gossamer.sim.engine.loops import loop_factory
class Cells(Struct):
    a: np.ndarray
class Mode(enum.IntEnum):
    FAST = {mode}
class Weights(NamedTuple):
    near: int
    far: float
K = {constant}
TABLE = np.array([{table}, 5])
WEIGHTS = Weights({weight}, 0.5)
GIVEN = int(sys.argv[1])
def make(factor, base):
    def add(x, y={default}):
        return x * factor + y + base()
    return rule(add)
def make_base(low):
    @inline_rule
    def base():
        return low
    return base
closed = make({factor}, make_base({low}))
if {branch}:
    @rule
    def choose(x):
        return x + {chosen}
else:
    @rule
    def choose(x):
        return x - {chosen}
@rule
def step(s, p):
    s.a[p] = (
        adjust(choose(closed(K))) + RATE * GIVEN + TABLE[0] + helper.SCALE + helper.deep.DEPTH
        + WEIGHTS.near + Mode.FAST.value
    )
@loop_factory(inline=False)
def make_all(step):
    def run_all(s):
        for p in range(len(s.a)):
            step(s, p)
    return run_all
compiled = Cells(a=np.zeros(2, np.int64))
make_all(step)(compiled)
interpreted = Cells(a=np.zeros(2, np.int64))
step(interpreted, 0)
step(interpreted, 1)
"""

HELPER = """
import deep
from deep import twist
from gossamer.protocol.kernel.rules import rule
RATE = {rate}
SCALE = {scale}
@rule
def adjust(x):
    return twist(x) * {adjusting}
"""

DEEP = """
from gossamer.protocol.kernel.rules import inline_rule
DEPTH = {depth}
SHIFT = {shift}
@inline_rule
def twist(x):
    return x ^ SHIFT
"""


@dataclass(frozen=True)
class Version:
    """What one version of the protocol says at each of the places where versions may differ."""

    constant: int = 1
    table: int = 1
    weight: int = 1
    mode: int = 1
    default: int = 1
    factor: int = 1
    low: int = 1
    branch: bool = True
    chosen: int = 1
    rate: int = 1
    scale: int = 1
    adjusting: int = 1
    depth: int = 1
    shift: int = 1
    argument: int = 1


def write_version(folder: Path, version: Version) -> Path:
    """Write the files of a version into a folder, over those of another; returns the script."""
    folder.mkdir(exist_ok=True)
    places = vars(version)
    for name, text in (("main", MAIN), ("helper", HELPER), ("deep", DEEP)):
        (folder / f"{name}.py").write_text(text.format(**places))
    return folder / "main.py"


def run_script(script: Path, *arguments: object) -> dict[str, Any]:
    """Run a script as a new process would, with the modules beside it read again: its names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(script), *map(str, arguments)])
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.syspath_prepend(script.parent)
        for name in ("helper", "deep"):
            patch.delitem(sys.modules, name, raising=False)
        try:
            return runpy.run_path(str(script), run_name="__main__")
        finally:
            for name in ("helper", "deep"):
                sys.modules.pop(name, None)
