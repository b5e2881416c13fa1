"""Finding peers on the local network by multicast DNS, and being found.

The zeroconf library does the talking in a thread of its own. It hands over names; each name is
then asked for its address and what it announces. All of that comes from anybody on the network:
names wait in a short queue, look-ups are few at a time and short, finds are paced, and what is
remembered is bounded, so that a liar can delay finding others and nothing else.
"""

from __future__ import annotations

import ipaddress
import re
from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import attrs
import trio

from gossamer.node.discovery.sources import (
    MULTICAST,
    Addresses,
    DiscoveredPeer,
    InterfaceAddress,
    Tell,
    choose,
    local_addresses,
)
from gossamer.node.errors import InterfaceError
from gossamer.node.monitoring.looks import next_look

if TYPE_CHECKING:
    from zeroconf import ServiceBrowser, ServiceInfo, ServiceStateChange, Zeroconf

SERVICE: Final = "_gossamer._tcp.local."
# Digits of the cluster's identifier that are announced: enough to tell clusters apart.
CLUSTER_DIGITS: Final = 16
MAX_KEY: Final = 1 << 62
MAX_ADDRESSES: Final = 8
MAX_TXT_BYTES: Final = 512

NAMES_WAITING: Final = 256
LOOK_UPS: Final = 8
LOOK_UP_MS: Final = 500
# A busy machine or network may lose an answer, and nothing would bring the name up again for long.
ATTEMPTS: Final = 3
# Saying goodbye takes a quarter of a second; a node stops within two.
CLOSE_S: Final = 1.5
# Seconds between two looks whether the machine's addresses have changed.
ADDRESSES_S: Final = 5.0

_NAME: Final = re.compile(rf"([0-9a-f]{{16}})\.{re.escape(SERVICE)}")


@attrs.frozen(kw_only=True)
class Announcement:
    """What a peer tells the local network about itself.

    Attributes:
        cluster: the cluster's identifier, hexadecimal; its first CLUSTER_DIGITS are told.
        key: the peer's permanent key.
        version: of the peers' protocol.
        port: where it listens.
        hosts: IP addresses to be reached at; none for those of the interfaces in use.
    """

    cluster: str
    key: int
    version: int
    port: int
    hosts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the service."""
        return f"{self.key:016x}.{SERVICE}"

    def properties(self) -> dict[str, str]:
        """The TXT record."""
        cluster = self.cluster[:CLUSTER_DIGITS]
        return {"cluster": cluster, "key": f"{self.key:016x}", "version": str(self.version)}


@attrs.define
class MulticastCounts:
    """What became of the names heard.

    Attributes:
        found: peers told, again where their addresses changed.
        known: heard again, unchanged.
        foreign: of another cluster.
        other_version: of this cluster, with a protocol that this peer does not speak.
        malformed: not announced the way peers do.
        silent: announced, and no answer to the question for the address.
        crowded_out: not looked at, as too many names were waiting.
    """

    found: int = 0
    known: int = 0
    foreign: int = 0
    other_version: int = 0
    malformed: int = 0
    silent: int = 0
    crowded_out: int = 0


class Multicast:
    """The source that asks the local network; see `Source`.

    Args:
        announcement: what to tell about this peer; others are found by the same.
        interface: name or address of the only interface to use, "" for all but loopback.
        found_limit: peers remembered, beyond which the longest unheard is forgotten.
        found_per_s: peers told in a second.
    """

    name = MULTICAST

    def __init__(
        self,
        announcement: Announcement,
        *,
        interface: str = "",
        found_limit: int = 256,
        found_per_s: float = 20,
    ) -> None:
        self.counts = MulticastCounts()
        self._announcement = announcement
        self._interface = interface
        self._found_limit = found_limit
        self._interval_s = 1 / found_per_s
        self._next_tell = 0.0
        self._known: OrderedDict[int, Addresses] = OrderedDict()

    async def run(self, tell: Tell) -> None:
        """Announce and look until cancelled; goodbye is said on the way out.

        Where the machine's addresses change it begins anew with those that there are.

        Raises:
            InterfaceError: there is no such interface, or multicast does not work here.
        """
        while True:
            self._known.clear()
            await self._run_at(choose(self._interface, local_addresses()), tell)

    async def _run_at(self, chosen: tuple[InterfaceAddress, ...], tell: Tell) -> None:
        """Announce and look at these addresses until they are others."""
        zeroconf = await trio.to_thread.run_sync(_open, chosen)
        names = _Names(self.counts, own=self._announcement.name)
        browser: ServiceBrowser | None = None
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._announce, zeroconf, chosen)
                browser = names.browse(zeroconf)
                for _ in range(LOOK_UPS):
                    nursery.start_soon(self._look_up_names, zeroconf, names, tell, chosen)
                while self._are_there(chosen):
                    await trio.sleep_until(next_look(ADDRESSES_S))
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True) as closing:
                closing.relative_deadline = CLOSE_S
                await trio.to_thread.run_sync(_close, zeroconf, browser, abandon_on_cancel=True)

    def _are_there(self, chosen: tuple[InterfaceAddress, ...]) -> bool:
        try:
            return choose(self._interface, local_addresses()) == chosen
        except InterfaceError:  # the interface is gone, which is told where it is looked for anew
            return False

    async def _announce(self, zeroconf: Zeroconf, chosen: tuple[InterfaceAddress, ...]) -> None:
        from zeroconf import ServiceInfo

        hosts = self._announcement.hosts or [str(one.address) for one in chosen]
        info = ServiceInfo(
            SERVICE,
            self._announcement.name,
            port=self._announcement.port,
            properties=self._announcement.properties(),
            parsed_addresses=[host.partition("%")[0] for host in hosts][:MAX_ADDRESSES],
        )
        # The name holds the key, so nobody else can mean it: no need to ask first whether it is
        # free, and a name left over from a crash is no obstacle.
        await trio.to_thread.run_sync(_register, zeroconf, info, abandon_on_cancel=True)

    async def _look_up_names(
        self,
        zeroconf: Zeroconf,
        names: _Names,
        tell: Tell,
        chosen: tuple[InterfaceAddress, ...],
    ) -> None:
        loopback = all(one.address.is_loopback for one in chosen)
        while True:
            name, attempt = await names.next()
            info = await trio.to_thread.run_sync(_look_up, zeroconf, name, abandon_on_cancel=True)
            if info is None:
                if attempt == ATTEMPTS:
                    self.counts.silent += 1
                else:
                    names.add(name, attempt + 1)
                continue
            found = read_answer(info, self._announcement, self.counts, loopback=loopback)
            if found is not None and self._is_news(found):
                await self._keep_pace()
                self.counts.found += 1
                await tell(found)

    def _is_news(self, found: DiscoveredPeer) -> bool:
        assert found.key is not None
        before = self._known.pop(found.key, None)
        self._known[found.key] = found.addresses
        if len(self._known) > self._found_limit:
            self._known.popitem(last=False)
        if before == found.addresses:
            self.counts.known += 1
        return before != found.addresses

    async def _keep_pace(self) -> None:
        at = max(trio.current_time(), self._next_tell)
        self._next_tell = at + self._interval_s
        await trio.sleep_until(at)


class _Names:
    """Names on their way from zeroconf's thread to trio's."""

    def __init__(self, counts: MulticastCounts, own: str) -> None:
        self._counts = counts
        self._own = own
        self._waiting: deque[tuple[str, int]] = deque()
        self._lot = trio.lowlevel.ParkingLot()
        self._token = trio.lowlevel.current_trio_token()

    def browse(self, zeroconf: Zeroconf) -> ServiceBrowser:
        """Have every name that is announced or changes put in the queue."""
        from zeroconf import DNSQuestionType, ServiceBrowser

        # Answers by multicast: a unicast one reaches only one of several peers of one machine.
        return ServiceBrowser(
            zeroconf, SERVICE, handlers=[self._on_change], question_type=DNSQuestionType.QM
        )

    async def next(self) -> tuple[str, int]:
        """The name that waited longest, and the number of the attempt to look it up."""
        while not self._waiting:
            await self._lot.park()
        return self._waiting.popleft()

    # zeroconf passes these by name.
    def _on_change(
        self,
        zeroconf: Zeroconf,  # noqa: ARG002
        service_type: str,  # noqa: ARG002
        name: str,
        state_change: ServiceStateChange,
    ) -> None:
        """Called in zeroconf's thread; has to be quick, as nothing bounds the calls that wait."""
        if state_change.name == "Removed" or name == self._own:
            return
        if _NAME.fullmatch(name) is None:
            self._counts.malformed += 1
        else:
            self.add(name, 1)

    def add(self, name: str, attempt: int) -> None:
        """Put a name in the queue, if there is room; from any thread."""
        if len(self._waiting) >= NAMES_WAITING:
            self._counts.crowded_out += 1
        else:
            self._waiting.append((name, attempt))
            try:
                self._token.run_sync_soon(self._wake, idempotent=True)
            except trio.RunFinishedError:
                self._waiting.clear()

    def _wake(self) -> None:
        self._lot.unpark(count=len(self._waiting))


def read_answer(
    info: ServiceInfo, own: Announcement, counts: MulticastCounts, *, loopback: bool
) -> DiscoveredPeer | None:
    """What an answer of the network says, if a peer of the same cluster could have given it.

    Args:
        info: the answer.
        own: what this peer announces.
        counts: told why there is None.
        loopback: whether loopback addresses count; from another machine they are nonsense.
    """
    told = _properties(info)
    key = _key(info.name)
    if told is None or key is None or told.get("key") != f"{key:016x}":
        counts.malformed += 1
    elif told.get("cluster") != own.properties()["cluster"]:
        counts.foreign += 1
    elif told.get("version") != str(own.version):
        counts.other_version += 1
    else:
        addresses = _addresses(info, loopback)
        if addresses and key != own.key:
            return DiscoveredPeer(key, addresses, MULTICAST)
        counts.malformed += 1
    return None


def _properties(info: ServiceInfo) -> dict[str, str] | None:
    """The TXT record as text, None where it is too long or no text."""
    if len(info.text or b"") > MAX_TXT_BYTES:
        return None
    try:
        return {
            name.decode("ascii"): (value or b"").decode("ascii")
            for name, value in info.properties.items()
        }
    except UnicodeDecodeError:
        return None


def _key(name: str) -> int | None:
    match = _NAME.fullmatch(name)
    key = int(match[1], 16) if match else MAX_KEY
    return key if key < MAX_KEY else None


def _addresses(info: ServiceInfo, loopback: bool) -> Addresses:
    port = info.port or 0
    if not 1 <= port <= 65535:
        return ()
    hosts = sorted(set(info.parsed_scoped_addresses()))
    return tuple((host, port) for host in hosts if _is_usable(host, loopback))[:MAX_ADDRESSES]


def _is_usable(host: str, loopback: bool) -> bool:
    address = ipaddress.ip_address(host)
    if address.is_unspecified or address.is_multicast:
        return False
    # A link-local address leads somewhere only together with the interface it was heard on.
    if address.version == 6 and address.is_link_local and not address.scope_id:
        return False
    return loopback or not address.is_loopback


def _open(chosen: Iterable[InterfaceAddress]) -> Zeroconf:
    from zeroconf import IPVersion, Zeroconf

    addresses = [one.address for one in chosen]
    versions = {address.version for address in addresses}
    if not addresses:
        raise _no_multicast("there is no network interface")
    ip_version = IPVersion.All
    if len(versions) == 1:
        ip_version = IPVersion.V4Only if 4 in versions else IPVersion.V6Only
    try:
        return Zeroconf([str(address) for address in addresses], ip_version=ip_version)
    except (OSError, RuntimeError) as error:
        raise _no_multicast(str(error)) from None


def _no_multicast(reason: str) -> InterfaceError:
    return InterfaceError(
        f"multicast DNS does not work here ({reason}), "
        "expected a network that carries it, or discovery.multicast = false"
    )


def _register(zeroconf: Zeroconf, info: ServiceInfo) -> None:
    from zeroconf import Error

    try:
        zeroconf.register_service(info, cooperating_responders=True)
    except Error as error:
        raise _no_multicast(str(error) or "zeroconf does not answer") from None


def _look_up(zeroconf: Zeroconf, name: str) -> ServiceInfo | None:
    from zeroconf import DNSQuestionType, Error

    try:
        return zeroconf.get_service_info(SERVICE, name, LOOK_UP_MS, DNSQuestionType.QM)
    except Error:  # it is closing, or its thread had no time for us
        return None


def _close(zeroconf: Zeroconf, browser: ServiceBrowser | None) -> None:
    if browser is not None:
        browser.cancel()
    zeroconf.close()
