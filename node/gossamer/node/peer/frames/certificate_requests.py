"""Asking for certificates that descriptors refer to and that were never met."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

import attrs

from gossamer.node.errors import RevokedCertificateError, UntimelyCertificateError
from gossamer.node.peer.frames.frame_types import CERTIFICATES_AT_ONCE, FrameService
from gossamer.node.security.certificates import read_certificate
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.transport.frames import encode_frame
from gossamer.node.transport.schema import Frame

# Frames of one peer that wait for certificates; others are taken with what is known.
MAX_HELD: Final = 8


@attrs.define
class _Asked:
    """What one peer was asked for, and what waits for its answer."""

    keys: set[int] = attrs.field(factory=set)
    frames: deque[Frame] = attrs.field(factory=deque)
    rounds: int = 0


@attrs.define(eq=False, slots=False)
class CertificateService(FrameService):
    """Asks whoever passes a descriptor on for its owner's certificate, and answers such requests.

    Args:
        own: key and certificate (DER) of this peer.
        send: sends a frame to a peer if it is connected.
        now: Unix seconds.
    """

    frames = ("certificates wanted",)

    _descriptors: DescriptorCache
    _own: tuple[int, bytes]
    _send: Callable[[int, bytes], object]
    _now: Callable[[], float]

    def __attrs_post_init__(self) -> None:
        self._asked: dict[int, _Asked] = {}

    def renew(self, certificate: bytes) -> None:
        """This peer's own certificate is another one from now on."""
        self._own = (self._own[0], certificate)

    def hold(self, sender: int, frame: Frame, missing: Iterable[int]) -> bool:
        """Ask ``sender`` for certificates, and hold its frame until the answer; False if full."""
        asked = self._asked.setdefault(sender, _Asked())
        if len(asked.frames) >= MAX_HELD:
            return False
        asked.frames.append(frame)
        wanted = sorted(set(missing) - asked.keys)[:CERTIFICATES_AT_ONCE]
        if wanted:
            asked.keys.update(wanted)
            self._send(sender, encode_frame("certificates wanted", keys=wanted))
        return True

    def receive(self, sender: int, frame: Frame) -> None:
        """Send ``sender`` those of the certificates that it wants which are known here."""
        found = [self._find(key) for key in frame["keys"]]
        known = [certificate for certificate in found if certificate is not None]
        self._send(sender, encode_frame("certificates", certificates=known))

    def take(self, sender: int, certificates: Iterable[bytes]) -> list[Frame]:
        """Learn what was asked for; return the frames that waited for it.

        Raises:
            CertificateError: what came is no certificate of this cluster.
        """
        asked = self._asked.pop(sender, _Asked())
        for certificate in certificates:
            key = read_certificate(certificate).key
            if key not in asked.keys:
                continue
            try:
                self._descriptors.learn(certificate, key, self._now())
            except (RevokedCertificateError, UntimelyCertificateError):
                # So by now: the peer that passed it on may not know yet.
                continue
        return list(asked.frames)

    def give_up(self) -> list[tuple[int, Frame]]:
        """Frames that have waited for a whole round, with who sent them; called once a round."""
        late = [sender for sender, asked in self._asked.items() if asked.rounds > 0]
        for asked in self._asked.values():
            asked.rounds += 1
        return [(sender, frame) for sender in late for frame in self._asked.pop(sender).frames]

    @property
    def waits(self) -> bool:
        """Whether certificates have been asked for that have not come."""
        return bool(self._asked)

    def forget(self, key: int) -> None:
        """A peer is gone; its answer will not come."""
        self._asked.pop(key, None)

    def _find(self, key: int) -> bytes | None:
        own_key, own_certificate = self._own
        return own_certificate if key == own_key else self._descriptors.find_certificate(key)
