"""A fourth family of brokers, registered from outside the package, in nodes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from gossamer.node.broker.contract.host import FamilyHost
from gossamer.node.broker.session import read_id
from gossamer.node.config.families import NAMED
from support.flooding import FloodingHost
from support.memory_brokers import MemoryBrokers, MemoryClient, machine
from support.transport_peers import on_jumping_clock

PROGRAM = """
import sys
from pathlib import Path
from gossamer.node.config.file import load_config
from gossamer.node.broker.node import family_of
config = load_config(Path(sys.argv[1])).config
print(config.broker.overlay, family_of(config).described())
"""


@attrs.define
class MemoryFloods(MemoryBrokers):
    def family(self, number: int) -> FamilyHost:
        del number
        return FloodingHost()

    def _is_settled(self) -> bool:
        ups = sum(sum(machine(node).neighbours.values()) for node in self.nodes.values())
        return ups == 2 * sum({*edge} <= set(self.nodes) for edge in self.edges)


@on_jumping_clock
async def test_a_family_from_outside_runs_in_nodes_and_is_recalled(tmp_path: Path) -> None:
    async with MemoryFloods.running(tmp_path, [(1, 2), (2, 3)]) as floods:
        ada = await MemoryClient.attach(floods.nodes[3], "ada")
        await ada.subscribe("low", "number < 5")
        bob = await floods.client(1, "bob")
        first = await bob.publish({"number": 3})
        await bob.publish({"number": 7})
        await ada.until_got({first})
        assert set(ada.got) == {first}
        route = await floods.nodes[1].trace(read_id(first))
        assert [one.broker for one in route] == [f"{number:016x}" for number in (1, 2, 3)]
        await floods.crash(3)
        node = await floods.start(3)
        await floods.settle()
        await ada.return_to(node)
        second = await bob.publish({"number": 4})
        await ada.until_got({first, second})
        assert set(ada.got) == {first, second}


@pytest.mark.parametrize("named", [True, False])
def test_a_configuration_names_it(tmp_path: Path, named: bool) -> None:
    file = tmp_path / "node.toml"
    file.write_text('[broker]\noverlay = "flooding"\n' + '[flooding]\nmotto = "all"\n' * named)
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        NAMED: "support.flooding_family:FLOODING" * named,
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if named:
        assert done.stdout == "flooding {'motto': 'all'}\n", done.stderr
    else:
        assert "expected one of tree, scot, graph" in done.stderr
