"""`gossamer node run` with several folders: a process for each, watched over by this one."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import trio

# Peers stop within two seconds; one that does not is ended.
STOP_S: Final = 5.0
EXIT_INTERRUPTED: Final = 128 + signal.SIGINT


def run_several(folders: Sequence[Path], changes: Sequence[str] | None) -> int:
    """Run the peer of each folder in a process of its own; return the exit code.

    When one fails, the others are stopped too.
    """
    options = [part for change in changes or () for part in ("--set", change)]
    return trio.run(partial(_run, folders, options))


async def _run(folders: Sequence[Path], options: Sequence[str]) -> int:
    codes: list[int] = []
    interrupted = False
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:

            async def watch(folder: Path) -> None:
                codes.append(await _run_one(folder, options))
                if codes[-1] != 0 or len(codes) == len(folders):
                    nursery.cancel_scope.cancel()

            for folder in folders:
                nursery.start_soon(watch, folder)
            async for number in signals:
                interrupted = number == signal.SIGINT
                nursery.cancel_scope.cancel()
    if interrupted:
        return EXIT_INTERRUPTED
    return max((code for code in codes if code > 0), default=0)


async def _run_one(folder: Path, options: Sequence[str]) -> int:
    command = [sys.executable, "-m", "gossamer.command.main", "node", "run", str(folder), *options]
    # In a group of its own, so that a Ctrl-C at the terminal reaches it once, through us.
    done = await trio.run_process(
        command, check=False, start_new_session=True, deliver_cancel=_stop
    )
    return done.returncode


async def _stop(process: subprocess.Popen[bytes] | trio.Process) -> None:
    process.send_signal(signal.SIGTERM)
    await trio.sleep(STOP_S)
    process.kill()
