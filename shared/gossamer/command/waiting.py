"""What a command is at, where it prints nothing for long and somebody looks."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# Who waits no longer than this is shown nothing.
PATIENCE_S: Final = 0.7


@contextmanager
def waiting(what: str, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Show on standard error, if it is a terminal, what is waited for and for how long already.

    Nothing may be printed within the block; what is shown is gone at its end.

    Args:
        what: the command is at, such as "drawing plots".
        patience_s: seconds before anything is shown.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(
        target=_show, args=(what, ended, patience_s), name="waiting", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _show(what: str, ended: threading.Event, patience_s: float) -> None:
    if ended.wait(patience_s):
        return
    # Imported once it is needed: most commands are done by then.
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(what, total=None)
        ended.wait()
