"""The doctor examines machines and nodes, and tells why a peer cannot be reached."""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import attrs
import pytest
import trio
import trio.testing
import trustme

from gossamer.node.doctor.failures import Finding, all_well
from gossamer.node.doctor.remote import Greeting, Probes, SocketAddress, check_greeting, diagnose
from gossamer.node.transport.handshake import PROTOCOL_VERSION
from support.node_processes import Shell, free_ports
from support.transport_peers import on_jumping_clock
from support.waiting import PATIENCE_S, running

HOST = "127.0.0.1"
GREETING = Greeting(cluster="ab" * 16, key=7, version=PROTOCOL_VERSION)
OURS = trustme.CA()
FOREIGN = trustme.CA()
DAY = timedelta(days=1)
NOW = datetime.now(UTC)
Serve = Callable[[trio.SocketStream], Awaitable[object]]


def examined(shell: Shell, *arguments: str, code: int | None = 0) -> dict[str, list[Any]]:
    done = shell.run("node", "doctor", *arguments, "--json")
    assert code is None or done.returncode == code, done.stdout + done.stderr
    found: dict[str, list[Any]] = {}
    for one in json.loads(done.stdout)["findings"]:
        found.setdefault(one["check"], []).append(one)
    return found


def test_where_there_is_no_node_the_machine_is_examined(shell: Shell) -> None:
    found = examined(shell, code=None)  # the ports may be taken on this machine
    assert all(found[check][0]["ok"] for check in ("python", "disk", "folder"))
    assert len(found["port"]) == 3
    assert "gossamer node init" in found["nodes"][0]["advice"]


def test_nodes_in_the_folders_here_are_examined_running_or_not(shell: Shell) -> None:
    shell.ok("node", "init", "demo", "--peers", "3", "--port", str(free_ports(3)))
    (shell.folder / "demo/peer2/peer.key").chmod(0o644)
    with shell.node("demo/peer1"), shell.node("demo/peer3"):
        found = examined(shell, code=1)
        assert [one["ok"] for one in found["node"]] == [True, False, True], found
        assert "it has run for" in found["node"][0]["what"]
        assert "peer2/peer.key can be used by others (mode 644)" in found["node"][1]["what"]
        text = shell.run("node", "doctor").stdout
    assert {"demo/peer1", "demo/peer2"} <= set(re.findall(r"demo/peer\d", text))


def test_peers_of_the_configuration_are_tried_while_the_node_does_not_run(shell: Shell) -> None:
    shell.ok("node", "init", "demo", "--peers", "2", "--port", str(free_ports(2)))
    with shell.node("demo/peer1"):
        examined(shell, "--folder", "demo/peer2")
    found = examined(shell, "--folder", "demo/peer2", code=1)
    assert not all(one["ok"] for checks in found.values() for one in checks)


def test_a_folder_that_is_named_has_to_hold_a_node(shell: Shell) -> None:
    (shell.folder / "empty").mkdir()
    assert "empty holds no membership" in shell.refused("node", "doctor", "--folder", "empty")
    # Other commands take the folder without an option.
    assert "folder goes after --folder" in shell.refused("node", "doctor", "empty/in")


def context(purpose: ssl.Purpose, trusted: trustme.CA, issued: trustme.LeafCert) -> ssl.SSLContext:
    made = ssl.create_default_context(purpose)
    made.verify_mode = ssl.CERT_REQUIRED
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    trusted.configure_trust(made)
    issued.configure_cert(made)
    return made


def server_context(trusted: trustme.CA = OURS, issued: trustme.LeafCert | None = None) -> Any:
    return context(ssl.Purpose.CLIENT_AUTH, trusted, issued or OURS.issue_cert("peer"))


async def do_tls(stream: trio.SocketStream) -> trio.abc.Stream:
    ours = context(ssl.Purpose.SERVER_AUTH, OURS, OURS.issue_cert("me"))
    secured = trio.SSLStream(stream, ours, server_hostname="peer")
    await secured.do_handshake()
    return secured


async def read_greeting(stream: trio.abc.Stream) -> Greeting:
    received = await stream.receive_some(4096)
    if not received:
        raise EOFError
    return Greeting(**json.loads(received))


def probes(**changes: Any) -> Probes:
    made = Probes(
        tls=do_tls,
        hello=read_greeting,
        cluster=GREETING.cluster,
        version=GREETING.version,
        listen_s=0.05,
    )
    return attrs.evolve(made, **changes)


async def greet(stream: trio.SocketStream, ours: ssl.SSLContext, greeting: Greeting) -> None:
    secured = trio.SSLStream(stream, ours, server_side=True)
    try:
        await secured.do_handshake()
        await secured.send_all(json.dumps(attrs.asdict(greeting)).encode())
    except trio.BrokenResourceError:
        await trio.aclose_forcefully(stream)


async def refuse(stream: trio.SocketStream, ours: ssl.SSLContext) -> None:
    """Refuse the client's certificate as OpenSSL does on a plain socket: with an alert."""

    def handshake() -> None:
        with socket.socket(fileno=os.dup(stream.socket.fileno())) as blocking:
            blocking.setblocking(True)
            with pytest.raises(ssl.SSLError):
                ours.wrap_socket(blocking, server_side=True)

    await trio.to_thread.run_sync(handshake)


@asynccontextmanager
async def serving(serve: Serve) -> AsyncIterator[int]:
    async with running() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host=HOST)
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        yield listener.socket.getsockname()[1]


async def findings_about(serve: Serve, with_probes: Probes) -> list[Finding]:
    with trio.fail_after(PATIENCE_S):
        async with serving(serve) as port:
            return await diagnose(HOST, port, with_probes)


def last(findings: list[Finding]) -> tuple[str, bool, str]:
    assert all_well(findings[:-1])
    return findings[-1].check, findings[-1].ok, findings[-1].what


async def forever(_: object) -> Any:
    await trio.sleep_forever()


async def test_a_healthy_peer_passes_every_check_in_order() -> None:
    serve = partial(greet, ours=server_context(), greeting=GREETING)
    findings = await findings_about(serve, probes())
    checks = ["name", "network", "connection", "TLS", "cluster", "version"]
    assert [one.check for one in findings] == checks
    assert all_well(findings)


class NoNames(trio.abc.HostnameResolver):
    def __init__(self, answers: bool) -> None:
        self.answers = answers

    async def getaddrinfo(self, *_: Any, **__: Any) -> Any:
        if not self.answers:
            await trio.sleep_forever()
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async def getnameinfo(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("answers", "words"), [(True, "Name or service not known"), (False, "no answer within 10 s")]
)
@on_jumping_clock
async def test_a_name_without_address_is_the_first_fault(answers: bool, words: str) -> None:
    trio.socket.set_custom_hostname_resolver(NoNames(answers))
    (finding,) = await diagnose("peer.example", 7710, probes())
    assert (finding.check, finding.ok) == ("name", False)
    assert words in finding.what


@on_jumping_clock
async def test_nobody_listening_differs_from_nobody_there() -> None:
    with socket.socket() as bound:  # and not listening
        bound.bind((HOST, 0))
        refused = await diagnose(HOST, bound.getsockname()[1], probes())
        silent = await diagnose(HOST, bound.getsockname()[1], probes(connect=forever))
    assert "nothing listens on that port" in last(refused)[2]
    assert "a firewall drops it" in last(silent)[2]


def speaking(first: bytes = b"", then: bytes = b"") -> Serve:
    async def serve(stream: trio.SocketStream) -> None:
        await stream.send_all(first)
        await stream.receive_some()
        await stream.send_all(then)
        await stream.send_eof()

    return serve


def showing(authority: trustme.CA, **validity: Any) -> Serve:
    ours = server_context(issued=authority.issue_cert("peer", **validity))
    return partial(greet, ours=ours, greeting=GREETING)


FAULTS: dict[str, tuple[Serve, str, str]] = {
    "SSH": (speaking(b"SSH-2.0-OpenSSH_9.2\r\n"), "protocol", "on that port: an SSH server"),
    "web": (speaking(then=b"HTTP/1.1 400 Bad Request\r\n\r\n"), "TLS", "something else speaks on"),
    "hangs up": (speaking(), "TLS", "hung up"),
    "foreign": (showing(FOREIGN), "TLS", "another cluster's authority"),
    "expired": (showing(OURS, not_before=NOW - 3 * DAY, not_after=NOW - DAY), "TLS", "expired"),
    "early": (showing(OURS, not_before=NOW + DAY, not_after=NOW + 2 * DAY), "TLS", "not valid yet"),
    "refuses us": (
        *(partial(refuse, ours=server_context(trusted=FOREIGN)), "hello"),
        "does not know the authority of our",
    ),
}


@pytest.mark.parametrize(("serve", "check", "words"), FAULTS.values(), ids=FAULTS)
async def test_who_is_no_peer_of_ours_is_named(serve: Serve, check: str, words: str) -> None:
    listen_s = 5 if check == "protocol" else 0.05
    found, ok, what = last(await findings_about(serve, probes(listen_s=listen_s)))
    assert (found, ok) == (check, False)
    assert words in what


async def test_a_mute_peer_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    autojump_clock.autojump_threshold = 0.05
    findings = await findings_about(trio.SocketStream.receive_some, probes(tls=forever))
    assert "no answer to the TLS within 10 s" in last(findings)[2]


async def test_the_next_address_is_tried_where_one_does_not_connect() -> None:
    async def only_second(address: SocketAddress) -> trio.SocketStream:
        if address[1][0] == "127.0.0.2":
            raise ConnectionRefusedError(111, "refused")
        return await trio.open_tcp_stream(*address[1])

    class TwoAddresses(NoNames):
        async def getaddrinfo(self, *given: Any, **_: Any) -> Any:
            kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
            return [(*kind, (host, given[1])) for host in ("127.0.0.2", HOST)]

    trio.socket.set_custom_hostname_resolver(TwoAddresses(answers=True))
    serve = partial(greet, ours=server_context(), greeting=GREETING)
    with trio.fail_after(PATIENCE_S):
        async with serving(serve) as port:
            findings = await diagnose("peer.example", port, probes(connect=only_second))
    assert [one.ok for one in findings if one.check == "connection"] == [False, True]
    assert findings[-1] == Finding(
        "version", True, f"peer 0000000000000007 speaks version {PROTOCOL_VERSION} as well"
    )


@pytest.mark.parametrize(
    ("changes", "check", "words"),
    [
        ({"cluster": "cd" * 16}, "cluster", "belongs to cluster"),
        ({"version": PROTOCOL_VERSION + 1}, "version", "speaks version"),
        ({"ours_timely": False}, "clock", "this machine's clock is wrong"),
        ({"theirs_timely": False}, "certificate", "its certificate is not valid"),
    ],
)
def test_a_greeting_tells_what_is_wrong(changes: dict[str, Any], check: str, words: str) -> None:
    assert all_well(check_greeting(GREETING, probes()))
    found = check_greeting(attrs.evolve(GREETING, **changes), probes())
    (fault,) = [one for one in found if not one.ok]
    assert fault.check == check
    assert words in fault.what
