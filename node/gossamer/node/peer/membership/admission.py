"""Who is let in, by their certificates, and how it is counted where one is not."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import trio
from attrs import define, field

from gossamer.node.errors import (
    CertificateError,
    DoubledIdentity,
    HandshakeFailed,
    NodeError,
    PeerRefused,
    PeerRevoked,
    RefusedByPeer,
    RevokedCertificateError,
)
from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.looks import next_look
from gossamer.node.monitoring.members import MemberTable
from gossamer.node.monitoring.metrics import TROUBLES, Counters
from gossamer.node.security.certificates import read_certificate
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.transport.base import (
    Address,
    Admitted,
    Cause,
    Farewell,
    Hello,
    PeerIdentity,
)


def admit(
    descriptors: DescriptorCache | None,
    counters: Counters,
    now: Callable[[], float],
    certificate: bytes | None,
    hello: Hello,
) -> PeerIdentity:
    """Who a peer is that showed ``certificate`` and says ``hello``.

    Args:
        descriptors: learn the certificate, know who belongs no more; None without certificates.
        now: Unix seconds.
        certificate: the peer's, DER; None without certificates.

    Raises:
        PeerRefused: it is no member.
    """
    if certificate is None or descriptors is None:
        return PeerIdentity(hello.key)
    try:
        peer = descriptors.learn(certificate, hello.key, now())
    except RevokedCertificateError as error:
        counters.refuse("revoked")
        proof = descriptors.revoked.proof_of(error.key)
        raise PeerRefused(str(error), Cause.REVOKED, proof) from error
    except CertificateError as error:
        counters.refuse("certificate")
        raise PeerRefused(str(error)) from error
    return PeerIdentity(peer.key, peer.fingerprint, peer.name)


# How it is counted and logged that a peer was not let in, or let go.
#
# A line about refusals names the address but does not tell one address from another, so that a
# flood from many of them is one line in `logging.repeat_s`, with a count.


# All other ends are goodbyes.
_CLOSED: Final = {
    Cause.LOST: "broken",
    Cause.SILENT: "silent",
    Cause.STALLED: "stalled",
    Cause.BAD_FRAME: "bad frame",
    Cause.FLOOD: "flood",
    Cause.UNUSED: "unused",
}


# Ends that say that something is wrong with one of both.
_CUT: Final = frozenset(
    {
        *(Cause.BAD_FRAME, Cause.FLOOD, Cause.STALLED, Cause.SILENT),
        *(Cause.REFUSED, Cause.REVOKED, Cause.VERSION, Cause.CLUSTER, Cause.BUSY),
    }
)


def count_end(counters: Counters, identity: PeerIdentity, farewell: Farewell) -> None:
    """Count the end of a connection; log one that was not in order."""
    counters.close(_CLOSED.get(farewell.cause, "goodbye"))
    if farewell.cause in _CUT:
        event = "a peer was cut" if farewell.by_us else "cut by a peer"
        more = {"why": farewell.detail} if farewell.detail else {}
        log.warning(event, peer=str(identity), cause=str(farewell.cause), **more)


def count_refusal(
    counters: Counters, error: NodeError | None = None, remote: Address | None = None
) -> None:
    """Count and log somebody who came in and was not let in.

    Certificates that prove no membership are counted where they are read, of those who come in
    and of those who are dialled.

    Args:
        counters: where to.
        error: what became of the handshake; None where there was no room for one.
        remote: where it came from, as far as that is known.
    """
    where = {} if remote is None else {"address": str(remote)}
    if isinstance(error, RefusedByPeer):
        log.warning("refused by a peer", cause=str(error), **where)
    else:
        why = {} if error is None else {"why": str(error)}
        log.warning("a peer was refused", cause=_refusal(error), **where, **why)
    ours = not isinstance(error, RefusedByPeer)
    if ours and not (error is not None and isinstance(error.__cause__, CertificateError)):
        counters.refuse(_refusal(error))


def _refusal(error: NodeError | None) -> str:
    if error is None:
        return "too many"
    if isinstance(error, HandshakeFailed):
        return error.cause
    if isinstance(error, PeerRefused) and error.cause in (Cause.VERSION, Cause.CLUSTER):
        return str(error.cause)
    return "bad hello"


# What connections tell the table of members.


_BROKEN = frozenset({Cause.LOST, Cause.SILENT, Cause.STALLED})


def note_connected(
    members: MemberTable, admitted: Admitted, descriptors: DescriptorCache | None
) -> None:
    """Note that a member is connected, and what it and its certificate say of it."""
    identity, hello = admitted.identity, admitted.hello
    der = None if descriptors is None else descriptors.find_certificate(identity.key)
    members.connected(
        identity.key,
        identity.name,
        tuple(map(str, hello.addresses)),
        hello.software.removeprefix("gossamer "),
        None if der is None else read_certificate(der).not_after,
    )


def note_disconnected(members: MemberTable, identity: PeerIdentity, farewell: Farewell) -> None:
    """Note that a member is connected no more."""
    left = farewell.cause is Cause.SHUTDOWN and not farewell.by_us
    broken = farewell.cause in _BROKEN
    members.disconnected(identity.key, left=left, broken=broken, cause=str(farewell))


# Whether this peer belongs to its cluster and reaches anybody, and processes of one key.
#
# What a peer's applications are told depends on it: who is revoked publishes nothing, and who is
# alone though it knows others holds by itself what it acknowledges.


# Seconds between two looks at what is wrong, and until what lasts is in the log again.
LOOK_S: Final = 2.0
TELL_AGAIN_S: Final = 60.0

ALONE = (
    "no other peer is reached, though others are known: what is published is held by this peer "
    "alone; 'gossamer node doctor HOST:PORT' says why"
)


@define(eq=False)
class MembershipStatus:
    """How one peer stands; those who find out set it, those who serve applications ask.

    Attributes:
        key: its permanent key.
        revoked: whether the cluster's authority has said that it belongs no more.
        reaches_nobody: tells whether it knows other peers and reaches none.
    """

    key: int = 0
    revoked: bool = False
    reaches_nobody: Callable[[], bool] = lambda: False
    _complaints: dict[str, list[Callable[[], str]]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._complaints = {kind: [] for kind in TROUBLES}
        self.ask("revoked", lambda: str(PeerRevoked(self.key)) if self.revoked else "")
        self.ask("alone", lambda: ALONE if self.alone else "")

    def ask(self, kind: str, complaint: Callable[[], str]) -> None:
        """Have ``complaint`` tell what is wrong of a kind of trouble, in a sentence, or ""."""
        self._complaints[kind].append(complaint)

    @property
    def alone(self) -> bool:
        """Whether an acknowledgement now means that this peer holds an event, and nobody else."""
        return not self.revoked and self.reaches_nobody()

    def check(self) -> None:
        """Let a peer that belongs pass.

        Raises:
            PeerRevoked: it belongs no more.
        """
        if self.revoked:
            raise PeerRevoked(self.key)

    def by_kind(self) -> dict[str, str]:
        """What is wrong: a sentence for people, by kind of trouble."""
        asked = ((kind, one()) for kind, all_of_it in self._complaints.items() for one in all_of_it)
        found: dict[str, str] = {}
        for kind, sentence in asked:
            if sentence:
                found.setdefault(kind, sentence)
        return found

    def troubles(self) -> tuple[str, ...]:
        """What is wrong, a sentence each, for people."""
        return tuple(self.by_kind().values())

    def counts(self) -> dict[str, int]:
        """For each kind of trouble 1 while there is some, else 0."""
        found = self.by_kind()
        return {kind: int(kind in found) for kind in TROUBLES}

    async def tell(self) -> None:
        """Have each trouble in the log when it comes, each minute that it lasts, and at its end."""
        told: dict[str, float] = {}
        while True:
            now, troubles = trio.current_time(), self.by_kind()
            for kind, sentence in troubles.items():
                if now - told.get(kind, -math.inf) >= TELL_AGAIN_S:
                    told[kind] = now
                    log.warning("trouble", kind=kind, cause=sentence)
            for kind in told.keys() - troubles.keys():
                del told[kind]
                log.info("trouble is over", kind=kind)
            await trio.sleep_until(next_look(LOOK_S))


# Notices that several processes run under one key, as copies of a node's folder or machine do.
#
# Others keep one connection for each key, so that such processes take each other's place again and
# again, and neither gets all of its events. Each hello names its process: whoever meets another one
# of a key takes it for a restart, until the former comes again. It tells the one whose place was
# taken, which knows at once, since it still runs.


# Seconds for which a doubled identity is told after the last sign of it.
TOLD_S: Final = 60.0
# Keys and, of each, processes that are remembered.
KEYS, PROCESSES = 1024, 4
ADVICE: Final = "stop one of them, or let it join anew in a folder of its own"


@define(eq=False)
class _Processes:
    """Those of one key.

    Attributes:
        places: where each was met, the last one last.
        doubled_at: trio's time when one came again after another.
        who: the peer, for people.
    """

    places: OrderedDict[bytes, str] = field(factory=OrderedDict)
    doubled_at: float = float("-inf")
    who: str = ""


class DoubledIdentities:
    """What one node knows of them."""

    def __init__(self) -> None:
        self._keys: OrderedDict[int, _Processes] = OrderedDict()
        self._own_at = float("-inf")
        self._own_detail = ""

    def on_admitted(self, admitted: Admitted) -> None:
        """Somebody is connected."""
        key, process = admitted.identity.key, admitted.hello.process
        if not process:
            return
        known = self._keys.pop(key, None) or _Processes()
        self._keys[key] = known
        known.who = str(admitted.identity)
        if process in known.places and next(reversed(known.places)) != process:
            known.doubled_at = trio.current_time()
        known.places.pop(process, None)
        known.places[process] = admitted.place
        for many, most in ((known.places, PROCESSES), (self._keys, KEYS)):
            while len(many) > most:
                many.popitem(last=False)

    def on_down(self, identity: PeerIdentity, farewell: Farewell) -> None:
        """A connection ended: another process of our key may have taken our place."""
        if farewell.cause is Cause.REPLACED and not farewell.by_us and farewell.detail:
            self._note_own(f"{identity} has met it at {farewell.detail}")

    def on_refusal(self, error: NodeError | None, remote: Address) -> None:
        """Somebody was not let in, since it has our own key."""
        if isinstance(error, DoubledIdentity):
            self._note_own(f"it came from {remote}")

    def complaint(self) -> str:
        """Which identities are doubled, in a sentence; "" where none is known to be."""
        now = trio.current_time()
        if now - self._own_at < TOLD_S:
            return f"another process runs under this node's key ({self._own_detail}): {ADVICE}"
        doubled = [one for one in self._keys.values() if now - one.doubled_at < TOLD_S]
        if not doubled:
            return ""
        first, more = doubled[0], len(doubled) - 1
        places = " and at ".join(list(first.places.values())[-2:])
        others = f", and {more} more are doubled" if more else ""
        return f"{first.who} runs twice, at {places}{others}: {ADVICE}"

    def _note_own(self, detail: str) -> None:
        self._own_at, self._own_detail = trio.current_time(), detail
