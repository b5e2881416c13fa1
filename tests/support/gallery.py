"""Draws the pictures of docs/gallery.md by the lines that stand above them.

python -m support.gallery     # in tests/: draw all anew into docs/gallery
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any, Final

from attrs import frozen
from matplotlib.figure import Figure
from PIL import Image

import gossamer.sim as gs
from support.checkout import ROOT

PAGE: Final = ROOT / "docs" / "gallery.md"
LARGEST: Final = 60_000
COLOURS: Final = 128
_BLOCK: Final = re.compile(
    r"(?ms)^## [^\n]+\n(?P<text>.*?)^!\[(?P<caption>[^\]]+)\]\((?P<picture>[\w/.-]+)\)"
)


@frozen
class Section:
    """A picture, a path in docs/, and what makes it: Python, or a command."""

    picture: str
    caption: str
    code: str
    command: str


def sections() -> list[Section]:
    """Of the page, in its order; names of Python are kept from one to the next."""
    found = []
    for block in _BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        code = "".join(re.findall(r"(?ms)^```python\n(.*?)^```$", block["text"]))
        command = "".join(re.findall(r"(?m)^    (python .*)$", block["text"]))
        found.append(Section(block["picture"], block["caption"], code, command))
    return found


def draw(folder: Path) -> Iterator[Path]:
    """Draw all pictures into ``folder``, the new docs/gallery, one after the other."""
    names: dict[str, Any] = {"gs": gs}
    with chdir(ROOT):
        for one in sections():
            path = folder / Path(one.picture).name
            if one.code:
                _figure(one.code, names).savefig(path, metadata={"Software": None})
                _shrink(path)
            elif path.name in shlex.split(one.command):
                words = [str(path) if word == path.name else word for word in _words(one.command)]
                environment = os.environ | {"MPLBACKEND": "agg"}
                subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=environment)
            else:
                continue  # another test holds that one to its command
            yield path


def _shrink(path: Path) -> None:
    """Keep 128 colours, which are enough for lines and text, and of dense pictures fewer points."""
    image = Image.open(path).convert("RGB")
    while True:
        image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
            path, optimize=True
        )
        if path.stat().st_size <= LARGEST:
            return
        image = image.resize((int(0.9 * image.width), int(0.9 * image.height)))


def _words(command: str) -> list[str]:
    return [sys.executable, *shlex.split(command)[1:]]


def _figure(code: str, names: dict[str, Any]) -> Figure:
    """Run the code; what its last line is."""
    *before, last = ast.parse(code).body
    assert isinstance(last, ast.Expr), code
    exec(compile(ast.Module(before, []), str(PAGE), "exec"), names)
    figure = eval(compile(ast.Expression(last.value), str(PAGE), "eval"), names)
    assert isinstance(figure, Figure), code
    return figure


if __name__ == "__main__":
    for drawn in draw(PAGE.with_suffix("")):
        print(f"{drawn.name}: {drawn.stat().st_size:,} bytes")
