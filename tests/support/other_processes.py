"""Another process that is at work on a result folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.spark_processes import environment

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
