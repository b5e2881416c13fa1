"""The doctor's words and its checks of this machine's own files and clock."""

from __future__ import annotations

import errno
import io
import ipaddress
import json
import os
import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trio
import trustme
from rich.console import Console

from gossamer.node.discovery.sources import InterfaceAddress
from gossamer.node.doctor import local
from gossamer.node.doctor.failures import (
    Finding,
    all_well,
    banner_cause,
    connect_cause,
    findings_json,
    findings_table,
    handshake_cause,
)
from gossamer.node.doctor.local import AHEAD, SUSPICIOUS, Signs, check_own_clock, signs_of_files
from gossamer.node.doctor.remote import check_cluster, check_network, check_version
from gossamer.node.errors import InterfaceError, NodeError
from gossamer.node.peer.persistence import LAST_GAP, read_gap
from gossamer.node.store import Store
from gossamer.node.transport.handshake import PROTOCOL_VERSION

ETH0 = tuple(
    InterfaceAddress("eth0", ipaddress.ip_address(address), ipaddress.ip_network(network))
    for address, network in (("10.0.0.2", "10.0.0.0/24"), ("fe80::2%eth0", "fe80::/64"))
)
NOW = datetime(2030, 5, 1, tzinfo=UTC)


def tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, "text")
    error.reason = reason
    return error


def unverified(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "text")
    error.verify_code, error.verify_message = code, "something odd"
    return error


def test_connections_and_handshakes_that_fail_are_explained() -> None:
    for number, words in (
        (errno.ECONNREFUSED, "nothing listens"),
        (errno.ETIMEDOUT, "firewall"),
        (errno.ENETUNREACH, "no way to that network"),
        (errno.EHOSTUNREACH, "nobody on the way"),
        (errno.EINVAL, "not complete"),
        (errno.EADDRNOTAVAIL, "no address to reach it from"),
        (errno.EPIPE, "Broken pipe"),
    ):
        assert words in connect_cause(OSError(number, os.strerror(number)))[0]
    for error, words in (
        (unverified(10), "expired"),
        (unverified(9), "not valid yet"),
        (unverified(20), "another cluster's authority"),
        (unverified(18), "another cluster's authority"),
        (unverified(23), "revoked"),
        (unverified(99), "something odd"),
        (tls_error("TLSV1_ALERT_UNKNOWN_CA"), "does not know the authority of our"),
        (tls_error("SSLV3_ALERT_CERTIFICATE_EXPIRED"), "finds our certificate expired"),
        (tls_error("SSLV3_ALERT_CERTIFICATE_REVOKED"), "ours was revoked|our certificate was"),
        (tls_error("TLSV13_ALERT_CERTIFICATE_REQUIRED"), "we showed none"),
        (tls_error("WRONG_VERSION_NUMBER"), "something else speaks"),
        (tls_error("NEVER_HEARD_OF"), "NEVER_HEARD_OF"),
        (tls_error("UNEXPECTED_EOF_WHILE_READING"), "hung up"),
        (ConnectionResetError(104, "reset"), "hung up"),
        (InterfaceError("its own sentence"), "its own sentence"),
    ):
        assert any(part in handshake_cause(error)[0] for part in words.split("|"))
    # What TLS said is found behind other errors, and what another server said is known.
    broken, wrapped = trio.BrokenResourceError(), InterfaceError("in other words")
    broken.__cause__, wrapped.__context__ = unverified(10), broken
    assert handshake_cause(wrapped) == handshake_cause(unverified(10))
    assert "SSH" in banner_cause(b"SSH-2.0-OpenSSH")[0]
    assert "mail" in banner_cause(b"220 host ESMTP")[0]
    assert banner_cause(b"\x00\x01")[0].endswith("and first")


def test_where_an_address_lies_is_told_and_cluster_version_and_clock_are_compared() -> None:
    for address, words in (
        ("127.0.0.1", "no other can use that address"),
        ("10.0.0.2", "is this machine, at eth0"),
        ("10.0.0.9", "on the network of eth0"),
        ("fe80::9%eth0", "on the network of eth0"),
        ("fe80::9%eth1", "a router has to be"),
        ("10.0.1.9", "a router has to be"),
        ("fd00::1", "a router has to be"),
    ):
        finding = check_network(ipaddress.ip_address(address), ETH0)
        assert finding.ok
        assert words in finding.what
    assert check_cluster("a", "a", "peer").ok
    assert "belongs to cluster b, this peer to a" in check_cluster("b", "a", "peer").what
    assert check_version(1, 1, "peer").ok
    assert "on that peer" in check_version(1, 2, "peer").advice
    assert "on this peer" in check_version(3, 2, "peer").advice


def test_findings_are_shown_as_they_are_whatever_a_peer_says() -> None:
    hostile, bad = Finding("a", True, "[red]fine[/red]", "look\x1b[2J"), ("bad", "mend it")
    findings, printed = [hostile, Finding("b", False, *bad)], io.StringIO()
    Console(file=printed, width=80).print(findings_table(findings, "to h"))
    assert "[red]fine[/red]" in printed.getvalue()
    assert "\x1b" not in printed.getvalue()
    assert "mend it" in printed.getvalue()
    document = json.loads(findings_json(findings))
    assert document["ok"] is all_well(findings) is False
    expected = {"check": "b", "ok": False, "what": "bad", "advice": "mend it"}
    assert document["findings"][1] == expected


def test_certificates_are_checked_by_this_clock(tmp_path: Path) -> None:
    path = tmp_path / "peer.pem"
    for starts, ends, ok, words in (
        (-10, 100, True, "100 more days"),
        (-10, 3, True, "3 more days"),
        (-10, -1, False, "expired on 2030-04-30"),
        (1, 10, False, "valid from 2030-05-02"),
    ):
        first, last = (NOW + timedelta(days=days) for days in (starts, ends))
        issued = trustme.CA().issue_cert("peer", not_before=first, not_after=last)
        issued.cert_chain_pems[0].write_to_path(str(path))
        finding = local.check_certificate(path, NOW)
        assert finding.ok is ok
        assert words in finding.what
        assert bool(finding.advice) == (ends < 14 or not ok)
    assert "cannot be read" in local.check_certificate(tmp_path / "none", NOW).what
    path.write_text("junk")
    assert "holds no certificate" in local.check_certificate(path, NOW).what


def test_keys_ports_and_state_files_are_checked(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    assert not local.check_key_file(key).ok
    key.write_text("secret")
    key.chmod(0o640)
    finding = local.check_key_file(key)
    assert (finding.ok, finding.advice) == (False, f"chmod 600 {key}")
    assert "mode 640" in finding.what
    key.chmod(0o600)
    assert local.check_key_file(key).ok
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = local.check_port(*holder.getsockname())
    foreign = local.check_port("192.0.2.77", 0)
    for unusable, advice in ((taken, "choose another port"), (foreign, "listen.addresses")):
        assert not unusable.ok
        assert advice in unusable.advice
    assert local.check_port("127.0.0.1", 0).ok

    def broken(path: Path) -> int:
        raise InterfaceError(f"{path} is junk")

    state = tmp_path / "state.db"
    assert local.check_state(state, lambda _: 1, 1).ok, "not there yet"
    state.touch()
    assert local.check_state(state, lambda _: 1, 1).ok
    assert "knows up to 1" in local.check_state(state, lambda _: 2, 1).what
    assert "junk" in local.check_state(state, broken, 1).what


@pytest.mark.trio
async def test_all_that_is_named_is_checked_in_order_and_multicast_as_asked(tmp_path: Path) -> None:
    finding = await local.check_multicast("127.0.0.1")
    assert ("works on" in finding.what) if finding.ok else ("comes back" in finding.what)
    unknown = await local.check_multicast("nope")
    assert (unknown.ok, unknown.advice) == (False, "Correct listen.interface.")
    here = local.Here(
        key=tmp_path / "key",
        certificate=tmp_path / "certificate",
        state=tmp_path / "state",
        state_version=lambda _: 1,
        newest_version=PROTOCOL_VERSION,
        listen=(("127.0.0.1", 0),),
        multicast=False,
    )
    findings = await local.diagnose_here(here)
    checked = [finding.check for finding in findings]
    assert checked == ["private key", "certificate", "state file", "port"]
    assert issubclass(InterfaceError, NodeError)


# A clock that is wrong is told from a certificate that has expired

START, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
SEEN = datetime(2027, 6, 1, tzinfo=UTC)
LAST_RUN = Signs((("state.db", SEEN), ("cluster.json", START)))


def test_a_clock_that_was_set_forward_is_suspected() -> None:
    """Where the certificate was valid last time, or the peer noted that it ran on.

    All files are of the wrong time by then; what the peer noted of the jump is not.
    """
    now = datetime(2036, 6, 1, tzinfo=UTC)
    finding = check_own_clock(now, START, END, LAST_RUN)
    assert not finding.ok
    assert "clock says 2036-06-01 00:00 UTC; state.db is of 2027-06-01" in finding.what
    assert "unless this peer was off for so long, the clock is ahead" in finding.what
    assert "Set this machine's clock" in finding.advice
    signs = Signs((("state.db", now),), gap=(SEEN, now - timedelta(hours=1)))
    finding = check_own_clock(now, START, END, signs)
    assert not finding.ok
    assert "the last run before the clock moved on is of 2027-06-01" in finding.what
    earlier = Signs((("state.db", now),), gap=(START, SEEN))
    assert check_own_clock(now, START, END, earlier).ok


def test_expiry_is_no_fault_of_a_clock_but_being_behind_its_own_files_is() -> None:
    for last_seen, now, ok in (
        # It expired while the peer was off for days, or for so long that this is suspicious.
        (END - timedelta(days=2), END + timedelta(days=2), True),
        (END - timedelta(days=2), END + SUSPICIOUS, False),
        # The peer ran beyond the end of its certificate.
        (END + timedelta(days=300), END + timedelta(days=301), True),
        # Nothing is known.
        (None, SEEN, True),
        (None, END + SUSPICIOUS, False),
    ):
        signs = Signs((("state.db", last_seen),)) if last_seen else Signs()
        assert check_own_clock(now, START, END, signs).ok is ok
    for behind, ok in ((AHEAD / 2, True), (timedelta(days=400), False)):
        finding = check_own_clock(SEEN - behind, START, END, LAST_RUN)
        assert finding.ok is ok
        assert ("it is behind, or was ahead then" in finding.what) is not ok


def test_files_and_what_is_kept_of_a_gap_tell_times(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with Store(path) as store:
        store.set_meta(LAST_GAP, b"[1.0, 86402.5]")
        raw = store.get_meta(LAST_GAP)
    os.utime(path, (SEEN.timestamp(), SEEN.timestamp()))
    assert signs_of_files([path, tmp_path / "missing"]) == (("state.db", SEEN),)
    assert raw is not None
    assert [moment.timestamp() for moment in read_gap(raw)] == [1.0, 86402.5]
    for bad in (b"", b"[]", b"[1]", b"{}", b'["a", "b"]', b"[1e300, 2]", b"\xff"):
        with pytest.raises((ValueError, OverflowError)):
            read_gap(bad)
