"""Who says what a peer says of itself: how descriptors travel, and which of them are believed.

With certificates a descriptor is what its owner signed, address and profile included, whoever
passes it on; only its age is the carrier's word. Without (plain text, loopback only) everything is
the carrier's word, and profiles travel as the protocol wrote them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import attrs

from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.security.certificates import Authority, PeerCertificate
from gossamer.node.security.descriptors import (
    Descriptor,
    DescriptorCache,
    SignedDescriptor,
    Verdict,
    sign_descriptor,
)
from gossamer.node.security.identity import Identity, decode, encode
from gossamer.node.transport.base import Address
from gossamer.protocol.kernel.errors import CapacityError, ConfigError
from gossamer.protocol.peer.record_table.layouts import ProfileFault, profile_fault
from gossamer.protocol.peer.settings.profile import LOAD

K = TypeVar("K")
V = TypeVar("V")

KEY_BYTES: Final = 8
# Descriptors that are at hand without being read again: as many as an address book has peers.
MAX_CACHED: Final = 4096
_KEY_HIGH: Final = (1 << 62) - 1

# Of the own descriptor. A steady overlay needs one; a peer that joins or shifts its load sends a
# few records that tell of its new place.
SIGNINGS_A_ROUND: Final = 4

# Under which cause of `metrics.DROP_CAUSES` a descriptor counts that is not believed.
_CAUSES: Final = {
    Verdict.CONFLICTING: "stale",
    Verdict.REVOKED: "stale",
    Verdict.EXPIRED: "stale",
    Verdict.FORGED: "forged",
    Verdict.MALFORMED: "forged",
}


@attrs.frozen
class AuthenticatedDescriptor:
    """What an entry in a frame's list of peers says.

    Attributes:
        key: whose it is.
        profile: what that peer says of itself; None where the words of the record say it.
        known: whether the peer may be talked to: its descriptor is believed, now or before.
    """

    key: int
    profile: Sequence[int] | None
    known: bool = True


def _key_bytes(key: int) -> bytes:
    return key.to_bytes(KEY_BYTES, "big")


def _read_key(entry: bytes) -> int:
    return int.from_bytes(entry[:KEY_BYTES], "big") & _KEY_HIGH


@attrs.define(eq=False, slots=False)
class SignedAuthentication:
    """Descriptors signed by their owners.

    Args:
        sequence: a number greater than all before.
        now: Unix seconds.
        first_range: from which of them on it tells ranges.
        load_step: a load that differs by less from the one signed last is not worth a signature.
    """

    in_words = False

    _authority: Authority
    _identity: Identity
    _certificate: PeerCertificate
    _descriptors: DescriptorCache
    _address_book: AddressBook
    _counters: Counters
    _sequence: Callable[[], int]
    _now: Callable[[], float]
    _profile_words: int
    _first_range: int
    _load_step: int

    def __attrs_post_init__(self) -> None:
        self.addresses: tuple[Address, ...] = ()
        self._signed = b""
        self._signed_profile: tuple[int, ...] = ()
        self._signed_addresses: tuple[Address, ...] = ()
        self._signings_left = SIGNINGS_A_ROUND
        # Most descriptors are met many times: by signature whose they are, by key what they say.
        self._owners: OrderedDict[bytes, int] = OrderedDict()
        self._recalled: OrderedDict[int, tuple[Descriptor, AuthenticatedDescriptor]] = OrderedDict()

    def new_round(self) -> None:
        """The own descriptor may be signed anew if the profile changes."""
        self._signings_left = SIGNINGS_A_ROUND

    def renew(self, certificate: PeerCertificate) -> None:
        """Name another certificate from now on: the next descriptor is signed anew."""
        self._certificate = certificate
        self._signed = b""

    def own(self, profile: tuple[int, ...]) -> bytes:
        """The entry for this peer, whose profile is given."""
        if not self._signed or self._deserves_signing(profile):
            self._sign(profile)
        return self._signed

    def _deserves_signing(self, profile: tuple[int, ...]) -> bool:
        """Whether a change is worth a signature, and verifications at everybody who meets it.

        Place, arc and interests decide where events go, addresses where it is found; the load,
        which changes all the time while events flow, can wait for the next round, and until it
        differs by a step.
        """
        if self._signings_left == 0:
            return False
        if self.addresses != self._signed_addresses:
            return True
        if profile == self._signed_profile:
            return False
        if _without_load(profile) != _without_load(self._signed_profile):
            return True
        if self._signings_left < SIGNINGS_A_ROUND:
            return False
        return abs(profile[LOAD] - self._signed_profile[LOAD]) >= self._load_step

    def _sign(self, profile: tuple[int, ...]) -> None:
        descriptor = Descriptor(
            self._identity.key,
            self._certificate.serial,
            tuple((host, port) for host, port in self.addresses),
            profile,
            self._sequence(),
            max(0, int(self._now())),
        )
        signed = sign_descriptor(self._authority, self._identity, descriptor)
        self._signed = signed.packed
        self._signed_profile, self._signed_addresses = profile, self.addresses
        self._signings_left -= 1

    def show(self, key: int) -> bytes:
        """The entry for another peer."""
        return self._descriptors.find_packed(key) or _key_bytes(key)

    def read(self, entry: bytes, missing: set[int]) -> AuthenticatedDescriptor | None:
        """What an entry says; None where it is of no use, which is counted.

        The keys of peers whose certificate would be needed are added to ``missing``.
        """
        if len(entry) == KEY_BYTES:
            return self._recall(_read_key(entry))
        known = self._descriptors.recognise(entry)
        if known is not None:
            return self._recall(known.key)
        signed = SignedDescriptor.unpack(entry)
        verdict = self._descriptors.take(signed, self._now())
        if verdict is Verdict.STALE:
            self._counters.repeat("older descriptor")
        elif verdict in _CAUSES:
            self._counters.drop(_CAUSES[verdict])
        if verdict.guilty:
            return None
        key = self._owner(signed)
        if verdict is Verdict.UNCERTIFIED:
            missing.add(key)
        return self._recall(key)

    def _recall(self, key: int) -> AuthenticatedDescriptor | None:
        """What is believed of a peer by now; of this peer itself, whatever it says."""
        if key == self._identity.key:
            return AuthenticatedDescriptor(key, self._signed_profile, known=bool(self._signed))
        descriptor = self._descriptors.find(key)
        if descriptor is None:
            return AuthenticatedDescriptor(key, None, known=False)
        recalled = self._recalled.get(key)
        if recalled is not None and recalled[0] is descriptor and key in self._address_book:
            return recalled[1]
        return self._take_in(descriptor)

    def _take_in(self, descriptor: Descriptor) -> AuthenticatedDescriptor | None:
        """Note what a believed descriptor says; None where its owner says what cannot be."""
        if self._fault(descriptor.profile) is not None:
            self._counters.drop("forged")
            return None
        addresses = (Address(*address) for address in descriptor.addresses)
        try:
            self._address_book.learn(descriptor.key, addresses)
        except CapacityError:
            return None
        told = AuthenticatedDescriptor(descriptor.key, descriptor.profile)
        _keep(self._recalled, descriptor.key, (descriptor, told))
        return told

    def _owner(self, signed: SignedDescriptor) -> int:
        """The key in a descriptor that was found readable."""
        key = self._owners.get(signed.signature)
        if key is None:
            key = int(decode(signed.content)[1])
            _keep(self._owners, signed.signature, key)
        return key

    def _fault(self, profile: tuple[int, ...]) -> ProfileFault | None:
        if len(profile) != self._profile_words:
            return ProfileFault("length", len(profile), f"{self._profile_words} words")
        return profile_fault(profile, self._first_range)


def _without_load(profile: tuple[int, ...]) -> tuple[int, ...]:
    return profile[:LOAD] + profile[LOAD + 1 :]


def _keep(cache: OrderedDict[K, V], key: K, value: V) -> None:
    cache[key] = value
    if len(cache) > MAX_CACHED:
        cache.popitem(last=False)


class PlainAuthentication:
    """Descriptors that nobody signed: keys and addresses, believed as they come."""

    in_words = True

    def __init__(self, key: int, address_book: AddressBook) -> None:
        self.addresses: tuple[Address, ...] = ()
        self._key = key
        self._address_book = address_book

    def new_round(self) -> None:
        """Nothing is signed."""

    def own(self, _profile: tuple[int, ...], /) -> bytes:
        return self._entry(self._key, self.addresses)

    def show(self, key: int) -> bytes:
        return self._entry(key, self._address_book.addresses_of(key))

    def _entry(self, key: int, addresses: Sequence[Address]) -> bytes:
        return _key_bytes(key) + encode([list(address) for address in addresses])

    def read(self, entry: bytes, _missing: set[int], /) -> AuthenticatedDescriptor | None:
        key = _read_key(entry)
        if key == self._key:
            return AuthenticatedDescriptor(key, None)
        try:
            addresses = [Address(str(host), int(port)) for host, port in decode(entry[KEY_BYTES:])]
            self._address_book.learn(key, addresses)
        except (ValueError, TypeError, ConfigError, CapacityError):
            return None
        return AuthenticatedDescriptor(key, None)


# How peers are told of in frames; `in_words` is whether profiles travel in the words of records.
Authentication = SignedAuthentication | PlainAuthentication
