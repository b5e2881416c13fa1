"""A plot of a run, as it lies in the result folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot on disk, with the words that go with it in the report."""

    name: str
    title: str
    caption: str
    svg: Path
    png: Path
