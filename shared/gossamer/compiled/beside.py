"""Makes code for another process: `python -m gossamer.compiled.beside FOLDER PLACE`.

What, it reads from its input: a number of bytes in a line, and as many (`standalone.make_all`).
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from pathlib import Path

from gossamer.compiled.store import FolderStore
from gossamer.protocol.kernel.rules import keep_code_in, teach_compiler


def main() -> None:
    """Make what is asked for, unless there is another such process in this place."""
    folder, place = sys.argv[1:]
    wanted = sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    store = FolderStore(Path(folder))
    with store.making(f"beside {place}", waits=False) as others_are:
        if not others_are:
            if sys.platform == "linux":
                # Those of the process that asked: the thread that did may be bound to one.
                os.sched_setaffinity(0, os.sched_getaffinity(os.getppid()))
            keep_code_in(store)
            teach_compiler()
            from gossamer.protocol.kernel.standalone import make_all

            make_all(pickle.loads(wanted), asks=False)


def _end_with_parent() -> None:
    """End where whoever asked is there no more; what is half made is kept nowhere."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(0)


if __name__ == "__main__":
    main()
