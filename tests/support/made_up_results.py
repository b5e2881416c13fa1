"""Folders of runs that never happened, and tables that are changed and damaged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from gossamer.sim.results.results import write_results
from support.made_up_runs import made_up_run


def write_run(folder: Path, seed: int = 1, **how: Any) -> Path:
    """Write a small run without pictures; its folder."""
    write_results(made_up_run(seed, **{"nodes": 40, "cycles": 25, **how}), folder, pictures=False)
    return folder


def write_runs(folder: Path, *seeds: int) -> Path:
    """Write small runs into folders called by their seeds; the folder of all."""
    for seed in seeds:
        write_run(folder / f"{seed}", seed)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def change(file: Path, changes: Mapping[str, Any]) -> None:
    """Replace columns of a table; None removes one."""
    table = pq.read_table(file)
    for name, column in changes.items():
        place = table.column_names.index(name)
        if column is None:
            table = table.remove_column(place)
        else:
            table = table.set_column(place, name, column(table[name]))
    pq.write_table(table, file)


def damage(file: Path) -> None:
    """Change a byte in the first half of a file, where its values are."""
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 0xFF
    file.write_bytes(bytes(content))


def spoil(file: Path, how: Mapping[str, Any] | Callable[[bytes], bytes] | None) -> None:
    """Replace columns of a table, or all content of a file; None removes it."""
    if how is None:
        file.unlink()
    elif callable(how):
        file.write_bytes(how(file.read_bytes()))
    else:
        change(file, how)
