"""Brokers of each family on hosts of their own, which know their neighbours by names of hosts."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Self

import attrs
import trio

from gossamer.node.errors import NodeError
from gossamer.node.local.client import LocalClient, open_client
from gossamer.node.local.follower import follow
from gossamer.protocol.brokers.scot import Factor, Scot
from support.host_stories import PORT, HostFleet
from support.network_hosts import Host
from support.node_fleets import LOOK_S, QUICK, Follower
from support.node_processes import PATIENCE_S, Shell

# `ip netns exec` mounts what is in a folder of a namespace's name here over files of /etc.
ETC = Path("/etc/netns")
WANTED = "price >= 0"
# Another broker is found out to be gone several times as soon as with the settings of others.
LIMITS = {key: value for key, value in QUICK.items() if key.startswith("limits__")}


@attrs.frozen
class Layout:
    """Brokers of a family, numbered from 1 on.

    Attributes:
        overlay: the family.
        dials: which of the others each connects to.
        settings: of all, with two underscores for a dot.
        places: what each is told of where it is, as options.
        announces: whether who publishes says before what it will publish.
    """

    overlay: str
    dials: Sequence[Sequence[int]]
    settings: Mapping[str, object] = attrs.field(factory=dict)
    places: Sequence[Sequence[str]] = ()
    announces: bool = False

    def options(self, number: int) -> Iterator[str]:
        yield from ("--role", "broker", "--overlay", self.overlay)
        for other in self.dials[number - 1]:
            yield from ("--neighbour", f"host{other}:{PORT}")
        if self.places:
            yield from self.places[number - 1]

    def links(self, number: int) -> int:
        """How many links a broker has."""
        return len(self.dials[number - 1]) + sum(number in others for others in self.dials)


def scot_layout(scot: Scot, **settings: object) -> Layout:
    """The brokers of a SCOT, cluster by cluster; of two that are linked the later one dials."""
    numbers = {label: number for number, label in enumerate(scot.brokers, 1)}
    dials: list[list[int]] = [[] for _ in numbers]
    for link in scot.links():
        earlier, later = sorted(numbers[end] for end in link)
        dials[later - 1].append(earlier)
    edges = [f"--edge={one}-{other}" for one, other in scot.acyclic.edges]
    overlay = ["--clusters", str(len(scot.clusters)), *edges]
    places = [
        ["--region", label.region, "--cluster", str(label.cluster), *overlay] for label in numbers
    ]
    return Layout("scot", dials, settings, places)


TREE = Layout("tree", [(), (1,), (2,), (2,), (4,)], announces=True)
# A ring with a chord, whose trees are often planned anew.
GRAPH = Layout(
    "graph",
    [(), (1,), (1, 2), (3,), (1, 4)],
    {"graph__interval_s": 2.0, "graph__probability": 1.0, "graph__threshold": 0.0},
)
_SCOT = Scot(Factor.path("ab"), Factor.complete(3))
SCOT = scot_layout(_SCOT, scot__around_failures=True, scot__take_over=True)
PLAIN_SCOT = scot_layout(_SCOT)


@attrs.define(eq=False)
class BrokerFleet(HostFleet):
    """Brokers on hosts; a client of each has the name that `client` gives it, and publishes."""

    layout: Layout = TREE

    def number(self, name: str) -> int:
        return self.names.index(name) + 1

    def options(self, name: str) -> Iterable[str]:
        yield from super().options(name)
        yield from self.layout.options(self.number(name))

    def renumber(self, network: str) -> None:
        super().renumber(network)
        self.name_hosts()

    def name_hosts(self) -> None:
        """Say on each host where all are, in the file that its programs have before them."""
        lines = [f"{host.address} host{host.number}\n" for host in self.hosts]
        for host in self.hosts:
            file = ETC / host.name / "hosts"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(["127.0.0.1 localhost\n", *lines]))

    @asynccontextmanager
    async def client(self, name: str) -> AsyncIterator[LocalClient]:
        """A client of a broker, as soon as it can be reached, that may publish."""
        async with super().client(name):
            pass
        async with open_client(self.address(name), "exchange", patience_s=0) as client:
            if self.layout.announces:
                await client.advertise("all", f"present(symbol) and {WANTED}")
            yield client

    async def ready(
        self, names: Iterable[str] | None = None, patience_s: float = PATIENCE_S
    ) -> float:
        """Wait until the links of these brokers are up; return for how long it was."""
        began = trio.current_time()
        with trio.fail_after(patience_s):
            for name in self.names if names is None else names:
                while not await self._has_its_links(name):
                    await trio.sleep(LOOK_S)
        return trio.current_time() - began

    async def _has_its_links(self, name: str) -> bool:
        self._check_running([name])
        try:
            links = (await self.tables(name))["links"]
        except NodeError:
            return False  # it does not listen yet
        ups = [link for link in links if link.get("takes publications", link["up"])]
        return len(ups) == self.layout.links(self.number(name))

    async def known_everywhere(self, followers: Sequence[Follower]) -> None:
        """Publish at every broker until each follower has got something from there."""
        published: dict[str, set[str]] = {name: set() for name in self.names}
        with trio.fail_after(PATIENCE_S):
            while any(
                not ids.intersection(one.got) for ids in published.values() for one in followers
            ):
                for name, ids in published.items():
                    async with self.client(name) as client:
                        ids.add(await client.publish({"symbol": "IBM", "price": 1}))


@attrs.define(eq=False)
class BrokerFollower(Follower):
    """A named client that wants everything, and notes where what it gets was kept for it."""

    positions: list[int] = attrs.field(factory=list)

    @classmethod
    def at(cls, fleet: BrokerFleet, name: str) -> Self:
        """One of a broker, of a name that no other broker has a client of."""
        return cls(fleet, name, f"ledger {fleet.number(name)}")

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        address = self.fleet.address(self.peer)
        async with follow(address, {"all": WANTED}, name=self.name) as events:
            task_status.started()
            async for event in events:
                self.got.append(event.id)
                self.positions.append(event.position)
                await events.acknowledge(event)

    @property
    def hidden(self) -> int:
        """Deliveries that the client was not handed, as it had got the same publication before."""
        return self.positions[-1] - len(self.positions) if self.positions else 0


@contextmanager
def broker_fleet(shell: Shell, hosts: Sequence[Host], layout: Layout) -> Iterator[BrokerFleet]:
    """Brokers that run, each on one of these hosts."""
    names = [f"demo/peer{host.number}" for host in hosts]
    settings: dict[str, object] = {
        **LIMITS,
        **layout.settings,
        "page__enabled": False,
        "listen__addresses": [f"0.0.0.0:{PORT}"],
        "discovery__multicast": False,
    }
    made = BrokerFleet(shell, names, settings=settings, hosts=hosts, layout=layout)
    try:
        made.name_hosts()
        made.start(*made.names)
        yield made
    finally:
        made.stop()
        for host in hosts:
            shutil.rmtree(ETC / host.name, ignore_errors=True)
