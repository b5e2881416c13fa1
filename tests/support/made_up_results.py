"""Folders of runs that never happened, tables that are changed and damaged, folders in use."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from gossamer.sim.results.results import write_results
from support.made_up_runs import made_up_run
from support.spark_processes import environment


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


_HOLD = """
import sys
from pathlib import Path
from gossamer.sim.results.held import held
from gossamer.sim.results.results import whole_folder

path = Path(sys.argv[1])
with held(path), whole_folder(path, replace=False) as folder:
    (folder / "half").write_text("written")
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_at_work(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds ``path`` and has half-written it, until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
