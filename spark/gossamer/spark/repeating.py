"""What is done again and again beside what goes on: looked at, shown, renewed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeated(act: Callable[[], object], every_s: float) -> Iterator[None]:
    """Call a function that raises nothing every so many seconds, in a thread, until the end."""
    over = threading.Event()

    def go() -> None:
        while not over.wait(every_s):
            act()

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
