"""Addresses of masters, asked before a session is made, and workers, waited for."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from gossamer.spark import internals
from gossamer.spark.errors import NO_WORKERS, no_session
from gossamer.spark.jobs import java_may_be_gone
from gossamer.spark.repeating import repeated

_DIALLING_S: Final = 5.0
_ANSWERING: Final = "8s"
_GREETING_S: Final = 10.0
# What a master is asked by; answers take one round trip.
_QUICK: Final = {
    "spark.rpc.askTimeout": _ANSWERING,
    "spark.rpc.lookupTimeout": _ANSWERING,
    "spark.network.timeout": _ANSWERING,
    "spark.rpc.connect.timeout": _ANSWERING,
    "spark.rpc.io.maxRetries": "0",
}
_STANDALONE: Final = "spark"
_CONNECT: Final = "sc"
_CONNECT_PORT: Final = 15002
NO_SERVER: Final = "whoever answers there is no server of Spark Connect"
NO_MASTER: Final = "whoever answers there is no master, or one of another version of Spark"


def check_reachable(master: str) -> None:
    """Ask whether anybody answers at the addresses of ``spark://`` or ``sc://``; others pass.

    Raises:
        SimulationError: nobody does, or an address is none.
    """
    reasons = []
    addresses = _addresses(master)
    for host, port in addresses:
        try:
            socket.create_connection((host, port), _DIALLING_S).close()
        except OSError as error:
            reasons.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return
    if addresses:
        raise no_session(master, f"where nobody answers ({'; '.join(reasons)})")


def check_is_connect(remote: str) -> None:
    """Ask whether a server of Spark Connect, or of gRPC at least, answers at an address.

    Spark itself waits without end, deaf to signals, for one that accepts connections and is silent.

    Raises:
        SimulationError: nobody who answers is one.
    """
    try:
        import grpc
        from pyspark.sql.connect.client import DefaultChannelBuilder
    except ImportError:  # said when the session is made
        return
    channel = DefaultChannelBuilder(remote).toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=_GREETING_S)
    except grpc.FutureTimeoutError:
        raise no_session(remote, f"where no session can be had ({NO_SERVER})") from None
    finally:
        channel.close()


def _addresses(master: str) -> list[tuple[str, int]]:
    """Hosts and ports of ``spark://`` or ``sc://``; none of any other master."""
    scheme, separator, rest = master.partition("://")
    if not separator or scheme not in (_STANDALONE, _CONNECT):
        return []
    found = []
    for address in rest.partition("/")[0].partition(";")[0].split(","):
        host, _, port = address.rpartition(":")
        if scheme == _CONNECT and not host:
            host, port = address, str(_CONNECT_PORT)
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise no_session(master, f"expected {scheme}://HOST:PORT")
        found.append((host.strip("[]"), int(port)))
    return found


def check_is_master(master: str, options: Mapping[str, str]) -> None:
    """Ask, by the Java of the session to come, whether a standalone master answers.

    Spark registers with whoever accepts connections, three times for twenty seconds. Here one
    question is asked that every master of the same version answers at once. Where Spark has no such
    classes any more nothing is asked.

    Args:
        master: the address.
        options: of Spark, among which may be how connections are secured.

    Raises:
        SimulationError: nobody who answers is a master.
    """
    if not master.startswith(f"{_STANDALONE}://"):
        return
    try:
        asker = internals.asker({**options, **_QUICK})
    except Exception:  # other classes than those of Spark 4, which says so in many ways
        return
    try:
        if not any(internals.is_master(asker, address) for address in _addresses(master)):
            raise no_session(master, f"where no session can be had ({NO_MASTER})")
    finally:
        asker.shutdown()


# The workers of a cluster, watched: Spark itself waits without end for some to come.


_LOOKING_S: Final = 0.5


@contextmanager
def workers_watched(session: Any, patience_s: float) -> Iterator[None]:
    """Cancel jobs that no worker of a cluster has been there for, for ``patience_s`` seconds.

    `jobs.explained` makes of that what users are told. A session of this machine, whose one worker
    is Spark itself, and one of Spark Connect, which tells nothing of workers, are left alone.
    """
    context = _context(session)
    if context is None or context.master.startswith("local"):
        yield
        return
    watcher = _Watcher(context, patience_s)
    with repeated(watcher.look, _LOOKING_S):
        yield


def _context(session: Any) -> Any:
    try:
        return session.sparkContext
    except Exception:  # a Spark Connect session has none, and says so in many ways
        return None


class _Watcher:
    """Cancels the jobs of a cluster that has had no worker for too long."""

    def __init__(self, context: Any, patience_s: float) -> None:
        self._context, self._patience_s = context, patience_s
        self._missed_since: float | None = None

    def look(self) -> None:
        """See whether there are workers, where there are jobs."""
        with java_may_be_gone():
            jobs = list(self._context.statusTracker().getActiveJobsIds())
            if not jobs or internals.has_workers(self._context):
                self._missed_since = None
                return
            now = time.monotonic()
            if self._missed_since is None:
                self._missed_since = now
            if now - self._missed_since >= self._patience_s:
                reason = f"{NO_WORKERS} for {self._patience_s:g} seconds"
                internals.cancel_jobs(self._context, jobs, reason)
