"""Makes the machine code of the rules of batches: `python -m gossamer.node.peer.batches.making`.

A process of its own, which loads the compiler.
"""

from __future__ import annotations

import os
import sys

import numpy as np

from gossamer.compiled.store import FolderStore
from gossamer.node.config.delivery import Delivery
from gossamer.node.config.node import Protocol
from gossamer.node.peer.batches.buffers import make_batch
from gossamer.node.peer.batches.machine_code import (
    LOWEST_PRIORITY,
    code_folder,
    code_name,
    load,
    save,
)
from gossamer.node.peer.batches.scanning import scan
from gossamer.node.peer.batches.taking import take
from gossamer.protocol.kernel.rules import teach_compiler
from gossamer.protocol.peer.state.state import make_state


def main() -> int:
    """Make the code, unless another process has; return the exit code."""
    folder = code_folder()
    if folder is None:
        return 1
    if sys.platform != "win32":
        os.nice(LOWEST_PRIORITY)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with FolderStore(folder).making(code_name()):
        if load() is None:
            _make()
    return 0 if load() is not None else 1


def _make() -> None:
    teach_compiler()
    from gossamer.protocol.kernel.native_code import native_code

    # Code serves all sizes: that of any peer.
    settings = Protocol().settings_for(1, Delivery())
    state = make_state(settings, 1, np.array([0], np.int64))
    batch = make_batch(settings)
    made = native_code(
        {"scan": (scan, [batch, 0, 0, 0, 0, 0]), "take": (take, [state, batch, 0, 0, 0])}
    )
    save(made.content, dict(made.symbols))


if __name__ == "__main__":
    sys.exit(main())
