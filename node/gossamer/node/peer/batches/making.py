"""Makes a part of the machine code: `python -m gossamer.node.peer.batches.making PART`.

A process of its own, which loads the compiler.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gossamer.compiled.store import FolderStore, keep_compiled_code
from gossamer.node.config.delivery import Delivery
from gossamer.node.config.node import Protocol
from gossamer.node.peer.batches.buffers import make_batch
from gossamer.node.peer.batches.machine_code import (
    EVENTS,
    LOWEST_PRIORITY,
    MADE_ELSEWHERE,
    code_folder,
    code_name,
    load,
    make_step_buffers,
    save,
    take_one,
)
from gossamer.node.peer.batches.taking import scan, take
from gossamer.protocol.kernel.rules import Rule, teach_compiler
from gossamer.protocol.peer.state.state import make_state

Entry = tuple[Rule, Sequence[Any]]


def main() -> int:
    """Make the part that is named, unless another process has or does; return the exit code."""
    (part,) = sys.argv[1:]
    folder = code_folder()
    if folder is None:
        return 1
    os.nice(LOWEST_PRIORITY)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with FolderStore(folder).making(code_name(part), waits=False) as elsewhere:
        if elsewhere:
            return MADE_ELSEWHERE
        if load(part) is None:
            _make(part)
    return 0 if load(part) is not None else 1


def _make(part: str) -> None:
    teach_compiler()
    # What peers' rules call by address is kept where simulations keep it.
    keep_compiled_code()
    from gossamer.protocol.kernel.standalone import native_code

    made = native_code(_entries(part))
    save(part, made.content, made.symbols, made.called)


def _entries(part: str) -> Mapping[str, Entry]:
    """The rules of a part, and what each might be called with."""
    # Code serves all sizes: that of any peer.
    settings = Protocol().settings_for(1, Delivery())
    state = make_state(settings, 1, np.array([0], np.int64))
    if part == EVENTS:
        batch = make_batch(settings)
        return {"scan": (scan, [batch, 0, 0, 0, 0, 0]), "take": (take, [state, batch, 0, 0, 0])}
    return {"step": (take_one, [state, make_step_buffers(settings), 0])}


if __name__ == "__main__":
    sys.exit(main())
