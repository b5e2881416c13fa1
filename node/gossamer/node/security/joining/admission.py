"""What only the holder of the authority's key does: invite, admit, revoke, renew."""

from __future__ import annotations

import secrets
from typing import Final

from attrs import evolve, frozen

from gossamer.node.errors import (
    CertificateError,
    ClusterFolderError,
    JoinError,
    RevokedCertificateError,
)
from gossamer.node.security.certificates import (
    PEER_LIFETIME_S,
    PeerCertificate,
    check_time,
    date_text,
    issue_certificate,
    make_authority,
    read_certificate,
)
from gossamer.node.security.cluster import Membership, load_signer, open_membership, save_renewed
from gossamer.node.security.identity import (
    Address,
    Identity,
    check_addresses,
    key_text,
    permanent_key,
    write_file,
)
from gossamer.node.security.joining.join_protocol import (
    EXPIRED,
    NAME_TAKEN,
    NOT_ON_RECORD,
    SECRET_BYTES,
    TOO_EARLY,
    UNKNOWN,
    USED,
    Token,
    refusal,
    token_id,
)
from gossamer.node.security.renewal import (
    RENEWABLE,
    RenewalRequest,
    Renewed,
    ask,
    authority_due_at,
    check_request,
    due_at,
)
from gossamer.node.security.revocation import (
    Revocation,
    RevocationList,
    load_list,
    save_list,
)
from gossamer.node.store import Store
from gossamer.node.store.events import IssuedCertificate, StoredToken
from gossamer.protocol.kernel.errors import ConfigError

TOKEN_LIFETIME_S: Final = 3600.0
_REVOKED: Final = "revoked peer "


@frozen
class Registrar:
    """A member that holds the authority's key; made by `open_registrar`.

    Attributes:
        member: its membership.
        signer: the authority's key pair.
    """

    member: Membership
    signer: Identity

    def invite(
        self,
        store: Store,
        addresses: tuple[Address, ...],
        now: float,
        lifetime_s: float = TOKEN_LIFETIME_S,
    ) -> Token:
        """A new token, of which ``store`` keeps a hash.

        Args:
            store: this member's state.
            addresses: where it takes join requests.
            now: Unix seconds.
            lifetime_s: how long the token is good for.

        Raises:
            ConfigError: an address or the lifetime is impossible.
            CapacityError: too many tokens are out.
        """
        check_addresses(addresses)
        if not 0 < lifetime_s <= PEER_LIFETIME_S:
            raise ConfigError("lifetime", lifetime_s, f"up to {PEER_LIFETIME_S:g} seconds")
        authority = self.member.authority
        token = Token(
            authority.cluster,
            authority.fingerprint,
            self.member.identity.key,
            addresses,
            secrets.token_bytes(SECRET_BYTES),
        )
        store.admissions.add_token(StoredToken(token_id(token.secret), now + lifetime_s), now)
        return token

    def expects(self, store: Store, secret: bytes, public_key: bytes, now: float) -> bool:
        """Whether a token is out with that secret, which no other peer used and is still good."""
        token = store.admissions.find_token(token_id(secret))
        if token is None or token.public_key not in (None, public_key):
            return False
        return now < token.expires_at

    def redeem(
        self, store: Store, secret: bytes, public_key: bytes, name: str, now: float
    ) -> PeerCertificate:
        """Give the one certificate that a token is worth.

        Atomic: of two peers with the same token one gets it. The same peer may ask again, as it
        must when the answer was lost, and gets the same certificate.

        Raises:
            JoinError: there is no such token, it is too old, another peer used it, or another
                member has that name.
            RevokedCertificateError: the peer is one that was revoked.
            ConfigError: the name is impossible.
        """
        with store.transaction():
            token = store.admissions.find_token(token_id(secret))
            if token is None:
                raise refusal(UNKNOWN)
            if token.public_key is not None and token.public_key != public_key:
                raise refusal(USED)
            if now >= token.expires_at:
                raise refusal(EXPIRED)
            if self.revoked().forbids(permanent_key(public_key), 0):
                raise RevokedCertificateError(permanent_key(public_key))
            if token.certificate is not None:
                return read_certificate(token.certificate)
            if self.is_taken(store, name, permanent_key(public_key), now):
                raise refusal(NAME_TAKEN)
            certificate = self._issue(public_key, name, now)
            store.admissions.use_token(token.hash, public_key, certificate.der)
            record_certificate(store, certificate)
            return certificate

    def revoke(self, store: Store, who: str, now: float, *, unrecorded: bool = False) -> Revocation:
        """Let the peer ``who``, a name or a key of 16 hexadecimal digits, belong no more.

        Its entry joins the list in the member's folder, from where it spreads by gossip.

        Args:
            store: this member's state.
            who: the peer.
            now: Unix seconds.
            unrecorded: take a key although no certificate of it is on record, as after the state
                file was lost.

        Raises:
            ClusterFolderError: nobody, or several, are meant by ``who``, or this member is.
            CapacityError: the list is full.
        """
        # The transaction keeps two commands from writing lists of the same sequence number.
        with store.transaction():
            key = self._key_of(store, who, unrecorded)
            issued = store.admissions.certificates_of_key(key)
            if key == self.member.identity.key:
                reason = "is the membership that holds the authority; it cannot be revoked"
                raise ClusterFolderError(self.member.folder.path, reason)
            # The record may have been lost; no certificate outlives the authority.
            ends = [certificate.not_after for certificate in issued]
            last = max(ends, default=self.member.authority.not_after)
            serials = tuple(certificate.serial for certificate in issued)
            entry = Revocation(key, serials, int(last))
            revoked = self.revoked().with_entry(entry, self.signer, now)
            store.set_meta(_REVOKED + key_text(key), b"1")
            save_list(self.member.folder.revoked, revoked)
        return entry

    def was_revoked(self, store: Store, key: int) -> bool:
        """Whether the peer ``key`` was ever revoked, though it may be on the list no more."""
        return store.get_meta(_REVOKED + key_text(key)) is not None

    def is_taken(self, store: Store, name: str, key: int, now: float) -> bool:
        """Whether a member other than ``key`` has a name."""
        if name == self.member.certificate.name and key != self.member.identity.key:
            return True
        revoked = self.revoked()
        return any(
            one.key != key and one.not_after > now and not revoked.forbids(one.key, one.serial)
            for one in store.admissions.certificates_of_name(name)
        )

    def current(self) -> Registrar:
        """This registrar by the files in its folder as they are now: they may be renewed."""
        return open_registrar(open_membership(self.member.folder.path))

    def revoked(self) -> RevocationList:
        """The list in the member's folder as it is now: a command may have changed it."""
        return load_list(self.member.folder.revoked, self.member.authority)

    def _issue(self, public_key: bytes, name: str, now: float) -> PeerCertificate:
        return issue_certificate(self.member.authority, self.signer, public_key, name, now)

    def _key_of(self, store: Store, who: str, unrecorded: bool) -> int:
        """The key of the one peer that is meant by ``who``."""
        folder = self.member.folder.path
        keys = {issued.key for issued in store.admissions.certificates_of_name(who)}
        if not keys and _is_key(who):
            key = int(who, 16)
            if unrecorded or store.admissions.certificates_of_key(key):
                keys = {key}
        if len(keys) > 1:
            texts = ", ".join(sorted(map(key_text, keys)))
            raise ClusterFolderError(
                folder, f"has several peers named {who!r}, expected one of these keys: {texts}"
            )
        if not keys:
            raise ClusterFolderError(
                folder,
                f"has issued nothing to {who!r}, expected a peer's name or key; if the record was"
                " lost, its key of 16 hexadecimal digits and --unrecorded",
            )
        return keys.pop()


def open_registrar(member: Membership) -> Registrar:
    """The registrar in a membership that holds the authority's key.

    Raises:
        ClusterFolderError: it holds none, as only the peer that made the cluster does; or the key
            cannot be used.
    """
    return Registrar(member, load_signer(member.folder, member.authority))


def record_certificate(store: Store, certificate: PeerCertificate) -> None:
    """Note a certificate that was issued, so that it can be revoked by name."""
    store.admissions.add_certificate(
        IssuedCertificate(
            certificate.serial, certificate.key, certificate.name, certificate.not_after
        )
    )


def _is_key(text: str) -> bool:
    return len(text) == 16 and set(text.lower()) <= set("0123456789abcdef")


# What only the holder of the authority's key does with certificates that end: it renews them.


_RENEWED: Final = "renewed certificate of "


def renew_peer(registrar: Registrar, store: Store, request: RenewalRequest, now: float) -> Renewed:
    """Answer a request; asked again, as it is when an answer was lost, the answer is the same.

    Atomic. Whose certificate has expired is renewed only if it was issued by this ``store``: who is
    revoked leaves the list once all of its certificates have expired, and never that record.

    A request for another name is answered whenever it comes; others find it in the certificate.

    Raises:
        CertificateError: the request is of nobody who belongs, or is revoked.
        JoinError: it is not signed, comes too early, wants a name that another member has, or is
            about a certificate that is too old and not on record here.
    """
    authority = registrar.member.authority
    claimed = read_certificate(request.certificate)
    with store.transaction():
        peer = check_request(authority, request, claimed.key, registrar.revoked())
        if registrar.was_revoked(store, peer.key):
            raise RevokedCertificateError(peer.key)
        last = _last(store, peer)
        name = request.name or last.name
        if name == last.name:
            _check_due(store, peer, last, now)
        elif registrar.is_taken(store, name, peer.key, now):
            raise JoinError(f"another member has the name {name!r}", NAME_TAKEN)
        if last is peer or not _is_good(last, now) or name != last.name:
            last = issue_certificate(authority, registrar.signer, peer.public_key, name, now)
            record_certificate(store, last)
            store.set_meta(_RENEWED + key_text(peer.key), last.der)
    return Renewed(last.der, authority.der)


def _last(store: Store, peer: PeerCertificate) -> PeerCertificate:
    """The last certificate that was renewed for the owner of ``peer``, or that one itself."""
    kept = store.get_meta(_RENEWED + key_text(peer.key))
    found = peer if kept is None else read_certificate(kept)
    return found if found.serial != peer.serial else peer


def _is_good(certificate: PeerCertificate, now: float) -> bool:
    """Whether it need not be renewed yet; not so of one made by a clock that was ahead."""
    try:
        check_time(certificate, now)
    except CertificateError:
        return False
    return now < due_at(certificate, RENEWABLE)


def _check_due(store: Store, peer: PeerCertificate, last: PeerCertificate, now: float) -> None:
    if now >= peer.not_after:
        known = store.admissions.certificates_of_key(peer.key)
        if peer.serial not in {one.serial for one in known}:
            raise JoinError(
                f"the certificate of peer {key_text(peer.key)} has expired and is not on record"
                " here; it needs a new invitation",
                NOT_ON_RECORD,
            )
    elif last is peer and peer.not_before <= now < due_at(peer, RENEWABLE):
        day = date_text(due_at(peer, RENEWABLE))
        raise JoinError(
            f"the certificate of peer {key_text(peer.key)} can be renewed from {day} on", TOO_EARLY
        )


def renew_here(
    registrar: Registrar, store: Store, now: float, name: str = "", *, force: bool = False
) -> Membership:
    """Renew the certificates of the holder itself where they are due, or by ``force``.

    The files in its folder are replaced; the membership that they are now is returned. The peer's
    has ``name`` from now on, where that is given and another.

    Raises:
        JoinError: another member has that name.
    """
    member = registrar.member
    if force or now >= authority_due_at(member.authority):
        member = _renew_authority(registrar, now)
    certificate = member.certificate
    early = now < certificate.not_before  # made by a clock that was ahead
    name = name or certificate.name
    if name != certificate.name and registrar.is_taken(store, name, certificate.key, now):
        raise JoinError(f"another member has the name {name!r}", NAME_TAKEN)
    if force or early or now >= due_at(certificate) or name != certificate.name:
        key = member.identity.public_key
        certificate = issue_certificate(member.authority, registrar.signer, key, name, now)
        member = evolve(member, certificate=certificate)
        with store.transaction():
            record_certificate(store, certificate)
            save_renewed(member)
    return member


def _renew_authority(registrar: Registrar, now: float) -> Membership:
    member = registrar.member
    known = member.authority
    # From the same instant on as before, so that a clock which is ahead does no harm.
    made = make_authority(registrar.signer, known.cluster, known.name, now, known.not_before)
    if made.not_after <= known.not_after:
        return member
    write_file(member.folder.authority_certificate, made.pem)
    return evolve(member, authority=made)


def request_of(member: Membership, name: str = "") -> RenewalRequest:
    """What a member asks the holder of the authority's key; it wants to have ``name``."""
    return ask(member.identity, member.certificate, name)
