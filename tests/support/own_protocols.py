"""Files and scenarios of protocols of one's own, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from support.checkout import ROOT

PROTOCOLS: Final = ROOT / "tests" / "support" / "protocols"
COOKBOOK: Final = ROOT / "examples" / "cookbook"

HEAD: Final = """\
from gossamer.sim.custom import (control,
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
