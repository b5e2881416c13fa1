"""Names of result folders, and of those of what is not finished yet."""

from __future__ import annotations

from typing import Final

# Behind the name of a folder, that of what is kept until it is whole.
UNFINISHED: Final = ".unfinished"


def file_name(text: str) -> str:
    """``text`` as part of a file name."""
    kept = "".join(c if c.isalnum() or c in "-_." else "-" for c in text)
    return kept.lstrip(".")[:100] or "run"
