"""Where the checkout is that tests read sources, documents, examples and traces of."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
# The real data beside the checkout, which is not everywhere.
SHARED_DATA: Final = ROOT.parent / "shared" / "data"


def shared_file(folder: Path, name: str) -> Path:
    data = folder / "shared" / "data"
    data.mkdir(parents=True)
    (data / name).touch()
    return data / name
