"""The state of a peer that outlives its process: one small SQLite file.

`store.Store` is the door; it holds peers and subscriptions, `events` what was delivered and who
was admitted, `broker` what a broker remembers, over one `database`. Every method that writes is one
transaction: after a crash at any instant it is there as a whole or not at all. Calls are short and
block, which suits a command; a running node reads and writes through `writer.open_writer`, which
commits many writes at once in a thread. A process has one connection to a file, and commands beside
a running node have theirs in their own processes.

The file keeps a write-ahead log with `synchronous=FULL`: a commit is on the disk when it returns.
The cheaper NORMAL would survive a crash of the process too, but a power cut could take back leased
sequence numbers (whose descriptors nobody would believe after) and tell a used token unused.
Grouping writes pays for the difference.

No part reads a clock: times are arguments, in seconds of Unix time. A clock that jumps ahead lets
events and tokens expire early, one that falls back lets them live longer; counts and bytes are
bounded either way.
"""

from __future__ import annotations

from gossamer.node.store.database import Database
from gossamer.node.store.store import SequenceNumbers, Store, StoreLimits

__all__ = ["Database", "SequenceNumbers", "Store", "StoreLimits"]
