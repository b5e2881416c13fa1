"""What only the holder of the authority's key does with certificates that end: it renews them."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from gossamer.node.errors import CertificateError, RenewalError, RevokedCertificateError
from gossamer.node.security.certificates import (
    PeerCertificate,
    check_time,
    date_text,
    read_certificate,
)
from gossamer.node.security.cluster import Membership, save_renewed
from gossamer.node.security.files import write_file
from gossamer.node.security.identity import key_text
from gossamer.node.security.issuing import issue_certificate, make_authority
from gossamer.node.security.joining.admission import Registrar, record_certificate
from gossamer.node.security.joining.join_protocol import NAME_TAKEN, NOT_ON_RECORD, TOO_EARLY
from gossamer.node.security.renewal import (
    RENEWABLE,
    RenewalRequest,
    Renewed,
    ask,
    authority_due_at,
    check_request,
    due_at,
)
from gossamer.node.store import Store

_RENEWED: Final = "renewed certificate of "


def renew_peer(registrar: Registrar, store: Store, request: RenewalRequest, now: float) -> Renewed:
    """Answer a request; asked again, as it is when an answer was lost, the answer is the same.

    Atomic. Whose certificate has expired is renewed only if it was issued by this ``store``: who is
    revoked leaves the list once all of its certificates have expired, and never that record.

    A request for another name is answered whenever it comes; others find it in the certificate.

    Raises:
        CertificateError: the request is of nobody who belongs, or is revoked.
        RenewalError: it is not signed, comes too early, wants a name that another member has, or is
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
            raise RenewalError(f"another member has the name {name!r}", NAME_TAKEN)
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
            raise RenewalError(
                f"the certificate of peer {key_text(peer.key)} has expired and is not on record"
                " here; it needs a new invitation",
                NOT_ON_RECORD,
            )
    elif last is peer and peer.not_before <= now < due_at(peer, RENEWABLE):
        day = date_text(due_at(peer, RENEWABLE))
        raise RenewalError(
            f"the certificate of peer {key_text(peer.key)} can be renewed from {day} on", TOO_EARLY
        )


def renew_here(
    registrar: Registrar, store: Store, now: float, name: str = "", *, force: bool = False
) -> Membership:
    """Renew the certificates of the holder itself where they are due, or by ``force``.

    The files in its folder are replaced; the membership that they are now is returned. The peer's
    has ``name`` from now on, where that is given and another.

    Raises:
        RenewalError: another member has that name.
    """
    member = registrar.member
    if force or now >= authority_due_at(member.authority):
        member = _renew_authority(registrar, now)
    certificate = member.certificate
    early = now < certificate.not_before  # made by a clock that was ahead
    name = name or certificate.name
    if name != certificate.name and registrar.is_taken(store, name, certificate.key, now):
        raise RenewalError(f"another member has the name {name!r}", NAME_TAKEN)
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
