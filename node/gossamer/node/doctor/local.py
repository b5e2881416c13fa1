"""What this machine, its clock and this peer's own files make impossible."""

from __future__ import annotations

import errno
import os
import platform
import resource
import shutil
import socket
import stat
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import attrs
import trio

from gossamer.node.discovery.sources import InterfaceAddress, choose, local_addresses
from gossamer.node.doctor.failures import RENEW, REVOKED_ADVICE, Finding
from gossamer.node.errors import InterfaceError, NodeError

# Whether this machine's clock can be believed: certificates are judged by it.
#
# A certificate that has expired and a clock that is ahead look the same. What tells them apart is
# when this peer is known to have run: if the certificate was valid then, and nothing is known of
# the time since, the clock may have jumped over its end.


# Peers are off for weekends and holidays; what is longer is suspicious where a certificate ended
# meanwhile, as a peer that runs renews it in time.
SUSPICIOUS: Final = timedelta(days=60)
# Clocks of file servers differ; an hour is more than they do.
AHEAD: Final = timedelta(hours=1)
ADVICE: Final = "Set this machine's clock (NTP) and look again, before anything else."


@attrs.frozen
class Signs:
    """When this peer is known to have run, or its files to have been written.

    Attributes:
        seen: moments, each with what tells of it.
        gap: the last long time of which nothing is known though the peer ran before and after it:
            its end is when it ran again, by the clock of then.
    """

    seen: tuple[tuple[str, datetime], ...] = ()
    gap: tuple[datetime, datetime] | None = None


def check_own_clock(now: datetime, start: datetime, end: datetime, signs: Signs) -> Finding:
    """Whether ``now`` fits what is known of this peer.

    Args:
        now: by this machine's clock.
        start, end: between which its certificate is valid.
        signs: of its life.
    """
    name, says = "clock", f"this machine's clock says {_text(now)}"
    what, newest = max(signs.seen, key=lambda sign: sign[1], default=("the certificate", start))
    if newest > now + AHEAD:
        reason = f"{says}, and {what} is of {_text(newest)}: it is behind, or was ahead then"
        return Finding(name, False, reason, ADVICE)
    for before, after in _gaps(now, what, newest, signs):
        if before[1] < end <= after and after - before[1] > SUSPICIOUS:
            days = (after - before[1]).days
            reason = (
                f"{says}; {before[0]} is of {_text(before[1])}, when the certificate was valid, "
                f"and nothing tells of the {days} days after it: unless this peer was off for so "
                "long, the clock is ahead"
            )
            return Finding(name, False, reason, ADVICE)
    return Finding(name, True, f"{says}; {what} is of {_text(newest)}")


def _gaps(
    now: datetime, what: str, newest: datetime, signs: Signs
) -> Iterable[tuple[tuple[str, datetime], datetime]]:
    """Times of which nothing is known: what tells of their beginning, and their end."""
    yield (what, newest), now
    if signs.gap is not None:
        yield ("the last run before the clock moved on", signs.gap[0]), signs.gap[1]


def signs_of_files(paths: Iterable[Path]) -> tuple[tuple[str, datetime], ...]:
    """When each of the files that are there was last written."""
    found = []
    for path in paths:
        try:
            found.append((path.name, datetime.fromtimestamp(path.stat().st_mtime, UTC)))
        except (OSError, OverflowError, ValueError):
            continue
    return tuple(found)


def _text(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M} UTC"


MULTICAST_GROUP: Final = "224.0.0.251"
MULTICAST_S: Final = 1.0
RENEW_BEFORE: Final = timedelta(days=14)


@attrs.frozen(kw_only=True)
class Here:
    """What of this peer is to be checked; None leaves a check out.

    Attributes:
        key: file of the private key.
        certificate: file of the certificate, PEM.
        revoked: whether the peer belongs to its cluster no more.
        signs: of when the peer ran, by which this machine's clock is judged.
        state: the state file.
        state_version: reads the version of a state file; raises `NodeError` or `OSError` where
            it cannot.
        newest_version: the newest that this software knows.
        listen: where this peer listens, None while it runs and holds the ports itself.
        interface: name or address of the one interface for multicast, "" for all.
        multicast: whether multicast is wanted at all.
    """

    key: Path | None = None
    certificate: Path | None = None
    revoked: bool | None = None
    signs: Signs = attrs.field(factory=Signs)
    state: Path | None = None
    state_version: Callable[[Path], int] | None = None
    newest_version: int = 0
    listen: tuple[tuple[str, int], ...] | None = None
    interface: str = ""
    multicast: bool = True


async def diagnose_here(here: Here) -> list[Finding]:
    """Check all that ``here`` names; nothing is changed."""
    findings = []
    if here.key is not None:
        findings.append(check_key_file(here.key))
    if here.certificate is not None:
        now = datetime.now(UTC)
        valid = validity(here.certificate)
        if valid is not None:
            findings.append(check_own_clock(now, *valid, here.signs))
        findings.append(check_certificate(here.certificate, now))
    if here.revoked is not None:
        findings.append(check_membership(here.revoked))
    if here.state is not None and here.state_version is not None:
        findings.append(check_state(here.state, here.state_version, here.newest_version))
    findings += [check_port(host, port) for host, port in here.listen or ()]
    if here.multicast:
        findings.append(await check_multicast(here.interface))
    return findings


def check_key_file(path: Path) -> Finding:
    """Whether the private key is there, and nobody else can read it."""
    name = "private key"
    try:
        status = path.stat()
    except OSError as error:
        advice = "'gossamer node init' or 'gossamer node join' makes one."
        return Finding(name, False, f"{path} cannot be looked at ({error.strerror})", advice)
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        what = f"{path} has mode {mode:03o}, so that others on this machine may use it"
        return Finding(name, False, what, f"chmod 600 {path}")
    if not os.access(path, os.R_OK):
        advice = "Run the node as the user who owns the key."
        return Finding(name, False, f"{path} is not readable for this user", advice)
    return Finding(name, True, f"{path} is readable for its owner only")


def check_certificate(path: Path, now: datetime) -> Finding:
    """Whether the certificate is valid, and for how much longer."""
    from cryptography import x509

    name = "certificate"
    advice = RENEW
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except OSError as error:
        return Finding(name, False, f"{path} cannot be read ({error.strerror})", advice)
    except ValueError:
        return Finding(name, False, f"{path} holds no certificate", advice)
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < start:
        what = (
            f"it is valid from {start:%Y-%m-%d %H:%M} UTC, and this clock says {now:%Y-%m-%d %H:%M}"
        )
        return Finding(name, False, what, "Set this machine's clock (NTP).")
    if now > end:
        what = f"by this machine's clock it expired on {end:%Y-%m-%d %H:%M} UTC"
        return Finding(name, False, what, advice)
    what = f"it is valid until {end:%Y-%m-%d %H:%M} UTC, {(end - now).days} more days"
    return Finding(name, True, what, advice if end - now < RENEW_BEFORE else "")


def validity(path: Path) -> tuple[datetime, datetime] | None:
    """From when to when the certificate in a file is valid; None where there is none."""
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError):
        return None
    return certificate.not_valid_before_utc, certificate.not_valid_after_utc


def check_membership(revoked: bool) -> Finding:
    """Whether the peer belongs to its cluster, as far as it has heard."""
    name = "membership"
    if not revoked:
        return Finding(name, True, "nobody has shown this peer that it is revoked")
    what = "this peer is revoked: the cluster's authority has said so, and no peer deals with it"
    return Finding(name, False, what, REVOKED_ADVICE)


def check_port(host: str, port: int) -> Finding:
    """Whether this peer could listen at ``host`` and ``port``."""
    name, where = "port", f"{host} port {port}"
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            # As a listener would: otherwise connections of a former run seem to hold the port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        return Finding(name, False, f"{where}: {error.strerror}", _port_advice(error))
    return Finding(name, True, f"{where} is free")


def _port_advice(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "This node runs already, or another program has it: choose another port."
    if error.errno == errno.EACCES:
        return "Ports below 1024 are for root: choose a higher one."
    return "Use an address that this machine has; see listen.addresses."


def check_state(path: Path, read_version: Callable[[Path], int], newest: int) -> Finding:
    """Whether this software can use the state file."""
    name = "state file"
    if not path.exists():
        return Finding(name, True, f"{path} is not there yet; the node makes it when it starts")
    try:
        version = read_version(path)
    except (NodeError, OSError) as error:
        advice = f"Move {path.name} away: the node starts without its memory, with its identity."
        if path.with_name("ca.key").exists():
            advice += " Peers are revoked by key then: 'gossamer node revoke KEY --unrecorded'."
        return Finding(name, False, f"{path} cannot be used ({error})", advice)
    if version > newest:
        what = f"{path} is of version {version}, and this software knows up to {newest}"
        return Finding(name, False, what, "Update gossamer on this machine.")
    return Finding(name, True, f"{path} is readable, version {version}")


async def check_multicast(interface: str) -> Finding:
    """Whether a multicast packet comes back on each interface that discovery would use."""
    name = "multicast"
    try:
        chosen = choose(interface, local_addresses())
    except InterfaceError as error:
        return Finding(name, False, str(error), "Correct listen.interface.")
    carried = [one for one in chosen if one.address.version == 4 and await _comes_back(one)]
    if carried:
        return Finding(name, True, f"it works on {', '.join(map(str, carried))}")
    tried = ", ".join(dict.fromkeys(one.interface for one in chosen)) or "any interface"
    return Finding(
        name,
        False,
        f"no multicast packet comes back on {tried}",
        "Let the firewall accept UDP port 5353, or list peers in discovery.peers.",
    )


async def _comes_back(one: InterfaceAddress) -> bool:
    packed = one.address.packed
    with trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            await probe.bind(("", 0))
            group = socket.inet_aton(MULTICAST_GROUP)
            probe.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group + packed)
            probe.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, packed)
            probe.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
            await probe.sendto(b"gossamer", (MULTICAST_GROUP, probe.getsockname()[1]))
            with trio.move_on_after(MULTICAST_S):
                return await probe.recv(8) == b"gossamer"
        except OSError:
            return False
    return False


# What this machine has to have for any node, whether there is one yet or not.


# A node holds a descriptor for each connection to a peer, a client or its page, and some files.
FEW_FILES: Final = 1024
# What the state files of a node with the default settings may grow to.
LITTLE_SPACE: Final = 1 << 30


def check_machine(folder: Path, ports: tuple[int, ...]) -> list[Finding]:
    """Whether a node could run here, in ``folder``, at these ports; nothing is changed."""
    return [
        check_python(),
        check_files(),
        check_space(folder),
        check_place(folder),
        *(check_port("0.0.0.0", port) for port in ports),
    ]


def check_python() -> Finding:
    """Which Python it is; the package does not install for one that is too old."""
    words = f"Python {platform.python_version()} on {platform.system()}, {sys.executable}"
    return Finding("python", True, words)


def check_files() -> Finding:
    """Whether a process may have as many descriptors as a node needs."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    what = f"a process may have {soft} files and connections open"
    if soft != resource.RLIM_INFINITY and soft < FEW_FILES:
        return Finding("open files", False, what, f"ulimit -n {FEW_FILES}")
    return Finding("open files", True, what)


def check_space(folder: Path) -> Finding:
    """Whether there is room for the files of a node."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Finding("disk", False, f"{folder} cannot be looked at ({error.strerror})")
    what = f"{free / (1 << 30):,.1f} GiB are free at {folder.absolute()}"
    if free < LITTLE_SPACE:
        return Finding("disk", False, what, "Make room: what cannot be kept waits in memory.")
    return Finding("disk", True, what)


def check_place(folder: Path) -> Finding:
    """Whether this user can make a node's folder here."""
    if os.access(folder, os.W_OK | os.X_OK):
        return Finding("folder", True, f"this user may write to {folder.absolute()}")
    what = f"this user may not write to {folder.absolute()}"
    return Finding("folder", False, what, "Go to a folder of your own.")
