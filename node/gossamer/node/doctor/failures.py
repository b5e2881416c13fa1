"""The words for what goes wrong on the way to a peer; every function is pure."""

from __future__ import annotations

import errno
import json
import ssl
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import attrs

from gossamer.node.errors import NodeError, RefusedByPeer
from gossamer.node.transport.base import Cause as End

if TYPE_CHECKING:
    from gossamer.command.tables import FittingTable


Cause = tuple[str, str]  # what happened, and what to do about it

_START: Final = "Start the peer there, or compare the port with its listen.addresses."
_FIREWALL: Final = (
    "Switch that machine on, or let its firewall and those between accept TCP on this port."
)
_ROUTE: Final = "Check cable, Wi-Fi or VPN of this machine, and the address."
_CLOCK: Final = "Set the clocks of both machines (NTP) and try again."
REVOKED_ADVICE: Final = (
    "Ask where the cluster was made. If it was a mistake: 'gossamer node join' with a fresh "
    "invitation, in a new folder."
)
RENEW: Final = (
    "If the clock is right, get a new certificate by 'gossamer node renew'; where there is none, "
    "by 'gossamer node join' with a fresh invitation."
)

_CONNECT: Final[Mapping[int, Cause]] = MappingProxyType(
    {
        errno.ECONNREFUSED: ("the machine answers, but nothing listens on that port", _START),
        errno.ETIMEDOUT: (
            "no answer at all: the machine is off, or a firewall drops it",
            _FIREWALL,
        ),
        errno.ENETUNREACH: ("this machine has no way to that network", _ROUTE),
        errno.EHOSTUNREACH: ("nobody on the way knows that machine", _ROUTE),
        errno.ECONNRESET: ("the connection was cut at once, as firewalls do", _FIREWALL),
        errno.EACCES: ("this machine's own firewall forbids it", "Allow it to connect outwards."),
        errno.EPERM: ("this machine's own firewall forbids it", "Allow it to connect outwards."),
        errno.EINVAL: (
            "the address is not complete",
            "A link-local address needs its interface, as in fe80::1%eth0.",
        ),
        errno.EADDRNOTAVAIL: (
            "this machine has no address to reach it from",
            "Use an address of a version, IPv4 or IPv6, that this machine has.",
        ),
        errno.EAFNOSUPPORT: (
            "this machine does not speak that version of IP",
            "Use an address of the other version.",
        ),
    }
)

_FOREIGN: Final[Cause] = (
    "its certificate was issued by another cluster's authority",
    "One of the two peers has to join the other's cluster: 'gossamer node invite' there, "
    "'gossamer node join' here.",
)
_NOT_TLS: Final[Cause] = (
    "something else speaks on that port: it does not answer with TLS",
    "Compare the port with the peer's listen.addresses; a plain-text peer cannot be reached "
    "from a TLS one.",
)
_EXPIRED: Final[Cause] = ("its certificate has expired", "It has to get a new one there.")
_EARLY: Final[Cause] = ("its certificate is not valid yet: one of the clocks is wrong", _CLOCK)
_REVOKED: Final[Cause] = (
    "its certificate was revoked",
    "If that was a mistake, invite the peer anew.",
)

_HUNG_UP: Final[Cause] = (
    "it hung up without a word",
    "Look in that peer's log for the reason; often it refuses our certificate.",
)

# What OpenSSL found wrong with the other side's certificate.
_VERIFY: Final[Mapping[int, Cause]] = MappingProxyType(
    {
        9: _EARLY,
        10: _EXPIRED,
        18: _FOREIGN,
        19: _FOREIGN,
        20: _FOREIGN,
        21: _FOREIGN,
        23: _REVOKED,
    }
)

# What OpenSSL says otherwise; an ALERT is what the other side found wrong with ours.
_REASONS: Final[tuple[tuple[str, Cause], ...]] = (
    ("ALERT_UNKNOWN_CA", ("it does not know the authority of our certificate", _FOREIGN[1])),
    ("ALERT_CERTIFICATE_EXPIRED", ("it finds our certificate expired", RENEW)),
    ("ALERT_CERTIFICATE_REVOKED", ("it knows that our certificate was revoked", REVOKED_ADVICE)),
    ("ALERT_CERTIFICATE_REQUIRED", ("it wants a certificate and we showed none", RENEW)),
    ("ALERT_BAD_CERTIFICATE", ("it refuses our certificate", f"{_CLOCK} {RENEW}")),
    ("ALERT_CERTIFICATE_UNKNOWN", ("it refuses our certificate", f"{_CLOCK} {RENEW}")),
    ("ALERT_PROTOCOL_VERSION", ("it speaks only another version of TLS", "Update that peer.")),
    ("UNSUPPORTED_PROTOCOL", ("it speaks only another version of TLS", "Update that peer.")),
    ("HANDSHAKE_FAILURE", ("the two sides share no way to encrypt", "Update the older of both.")),
    ("WRONG_VERSION_NUMBER", _NOT_TLS),
    ("HTTP_REQUEST", _NOT_TLS),
    ("RECORD_LAYER_FAILURE", _NOT_TLS),
    ("UNEXPECTED_MESSAGE", _NOT_TLS),
)

# How the first words of a server that talks before it is asked give it away.
_BANNERS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"SSH-", "an SSH server"),
    (b"220", "a mail or FTP server"),
    (b"HTTP/", "a web server"),
    (b"* OK", "an IMAP server"),
    (b"+OK", "a POP3 server"),
    (b"RFB ", "a VNC server"),
)


def connect_cause(error: OSError) -> Cause:
    """Why a TCP connection did not come about."""
    if isinstance(error, TimeoutError):
        return _CONNECT[errno.ETIMEDOUT]
    known = _CONNECT.get(error.errno or 0)
    return known or (f"the system says: {error.strerror or error}", "")


def handshake_cause(error: BaseException) -> Cause:
    """Why TLS or the hello did not come about: what TLS says if it is behind the error."""
    behind: BaseException | None = error
    while behind is not None:
        known = _tls_cause(behind)
        if known is not None:
            return known
        behind = behind.__cause__ or behind.__context__
    if isinstance(error, RefusedByPeer) and error.cause == End.REVOKED:
        return ("it says that this peer is revoked", REVOKED_ADVICE)
    if isinstance(error, NodeError):
        return (str(error), "Look in that peer's log for its side of it.")
    return _HUNG_UP


def _tls_cause(error: BaseException) -> Cause | None:
    if not isinstance(error, ssl.SSLError):
        return None
    if isinstance(error, ssl.SSLCertVerificationError):
        text = f"its certificate does not check: {error.verify_message}"
        return _VERIFY.get(error.verify_code, (text, _CLOCK))
    reason = error.reason or ""
    for part, cause in _REASONS:
        if part in reason:
            return cause
    return None if not reason or "EOF" in reason else (f"TLS failed: {reason}", "")


def banner_cause(first: bytes) -> Cause:
    """What speaks on a port where a peer would have waited to be spoken to."""
    for start, kind in _BANNERS:
        if first.startswith(start):
            return (f"something else speaks on that port: {kind}", _NOT_TLS[1])
    return ("something else speaks on that port, and first", _NOT_TLS[1])


# What the doctor's checks say, as a table for people and as JSON.


@attrs.frozen
class Finding:
    """What one check found.

    Attributes:
        check: what was checked, in a word or two.
        ok: whether it is as it should be.
        what: what was found, one sentence.
        advice: what to do about it, "" where there is nothing to do.
    """

    check: str
    ok: bool
    what: str
    advice: str = ""


def all_well(findings: Iterable[Finding]) -> bool:
    """Whether no check found a fault."""
    return all(finding.ok for finding in findings)


def findings_json(findings: Iterable[Finding]) -> str:
    """The findings for programs: ``{"ok": ..., "findings": [...]}``."""
    listed = list(findings)
    document = {"ok": all_well(listed), "findings": [attrs.asdict(one) for one in listed]}
    return json.dumps(document, indent=2)


def findings_table(findings: Iterable[Finding], title: str) -> FittingTable:
    """The findings for people, each fault with its advice."""
    from rich.text import Text

    from gossamer.command.tables import FittingTable

    table = FittingTable("check", "", "finding", title=title, title_justify="left")
    for finding in findings:
        sign = Text("ok", "green") if finding.ok else Text("fault", "bold red")
        # What other machines said may be in it: as text it cannot be taken for markup.
        words = Text(printable(finding.what))
        if finding.advice:
            words.append(f"\n{printable(finding.advice)}", "dim" if finding.ok else "bold")
        table.add_row(Text(finding.check), sign, words)
    return table


def printable(text: str) -> str:
    """``text`` without characters that would steer a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
