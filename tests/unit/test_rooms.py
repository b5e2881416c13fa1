"""One page a folder, its docstring, leads whoever reads from the top to what there is.

The pages are ``docs/architecture.md`` and below it the docstrings of ``__init__.py``.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Final

import pytest

from support.folder_graph import DOCUMENT, DRAWN, modules, parsed, rooms

# What parses all sources runs in one process, which parses them once.
pytestmark = pytest.mark.xdist_group("sources")

# What somebody new asks, what answers it, and where that is: at least one of every room.
ASKED: Final = """
how machine code of rules is kept between runs | keep_compiled_code | compiled/store
which libraries each extra needs | NEEDS | command/extras
how shells complete options | candidates | command/completion
a small overlay of brokers in memory | LocalOverlay | brokers/local_overlay
greedy lookup of a value | next_hop | protocol/peer/state/lookup
showering of a range with boxes | spread | protocol/peer/rendezvous/installation_boxes
events for peers that come late | note_got | protocol/peer/rendezvous/event_log
small-world links, long ones | draw_offsets | protocol/peer/topology/fingers
primary attribute of a peer's interests | select_primary_attribute | protocol/peer/topology/utility
load shifting of identifiers | shift_load | protocol/peer/topology/load_shifting
what was missed, found by comparing | compare_on | protocol/peer/recovery/comparing
order-preserving hash of values | OrderPreservingHash | protocol/peer/space/hashing
the sampler Cyclon | cyclon_on_timer | protocol/peer/sampling/cyclon
the preset of the paper | paper | protocol/peer/settings/presets
where a new record is declared | TABLE | protocol/peer/record_table/records
critical brokers and pruning | critical_distances | protocol/brokers/tree/pruning
covering: which subscriptions are quenched | displaced_by | protocol/brokers/tree/covering
subscription broadcast, Algorithm 1 of SCOT | on_subscription | protocol/brokers/scot/broadcast
the product of a tree and a complete graph | Scot | protocol/brokers/scot/topology
which trees the coordinator makes | sample | protocol/brokers/graph/coordinator
grouping by MULT | merge_by_overlap | protocol/dissemination/grouping
COMPUTETREE, the tree of one group | compute_tree | protocol/dissemination/plan
composite subscriptions | CompositeMatcher | protocol/content/matching/composite_matcher
the index over many filters | MatchingIndex | protocol/content/matching/index
PADRES' text of filters | filter_text | protocol/content/filters/padres_writing
one function compiled or interpreted | rule | protocol/kernel/rules
which worker gets an event of a queue group | Leader | protocol/patterns/groups
a client for programs without an event loop | connect | client/blocking
the handshake, the hello of both ends | introduce | node/transport/handshake
bounds of a connection and their reasons | Limits | node/transport/limits
the signed list of revocation | RevocationList | node/security/revocation
invitations and tokens of those who join | Token | node/security/joining/join_protocol
many writes in one transaction | StoreWriter | node/store/writer
finding peers by multicast DNS | Multicast | node/discovery/multicast
configuration from TOML, environment, flags | load_config | node/config/file
the doctor: why a peer cannot be reached | diagnose | node/doctor/remote
who exceeds bounds, overload | Overloads | node/peer/load/overload
frames that come to a peer | Inbound | node/peer/inbound
signatures of events | SignedEvents | node/peer/frames/event_authentication
the leader of queue groups in a node | Leading | node/local/groups/leading
events kept for clients that are away | History | node/local/history
how a broker's messages are stored | Journal | node/broker/journal
metrics of Prometheus | METRICS | node/monitoring/metrics
the page for browsers | serve_page | node/page/server
a peer's folder as one file, backup | write_archive | node/commands/backup/archive
arguments of the command `gossamer node` | COMMAND_GROUP | node/cli/node
churn replayed on real peers | Controller | replay/controller
churn lists of other programs | read | sim/churn/lists
latency matrices of measurements | read_matrix | sim/engine/latency_files/matrices
the event engine on several threads | WindowEngine | sim/engine/windows/window_engine
warm-up of a run, by MSER-5 | mser5 | sim/results/intervals
sweeps over a grid of values | SweepPlan | sim/results/sweeps/plan
protocols of plain classes | Node | sim/custom/node
T-Man with a ranking of one's own | TManNode | sim/custom/topologies/tman
every order of messages, timers and faults | explore | sim/exploration/exploration
states that are one but for names of nodes | canonical_digest | sim/exploration/symmetry
what a study is | Study | sim/study/contract
benchmarks of the event engines | EVENT_BENCHMARKS | sim/bench/engine_benchmarks
the burst of unsubscriptions | UnsubscriptionBurst | sim/studies/tree_brokers/unsubscription_burst
claims V1 to V10 of Vinifera | claims_of | sim/figures/vinifera/claims
workloads as tables of rows | RowTable | sim/row_tables/table
what `simulate` does in scripts | simulate | sim/commands/scripts
does a master of Spark answer | check_is_master | spark/masters
percentiles of a column by executors | distribution | spark/crunch/quantiles
which deliveries are due | Due | spark/stream/due
points of a sweep as tasks of Spark | SparkPoints | spark/sweep/running
folders that grow on any storage | grown_folder | spark/storage/folders
an archive of the package for executors | make_package | spark/shipping/packing
a workload checked after it was written | check_workload | spark/workload/checks
the subcommand `gossamer spark` | workload | spark/commands/cli
"""
RULES: Final = [tuple(line.split(" | ")) for line in ASKED.strip().splitlines()]
# Names in backquotes that are in none of the folders around the page.
ELSEWHERE: Final = {"attach", "handle", "kindred", "step"}
PACKAGES: Final = [one for one, path in modules().items() if path.name == "__init__.py"]


def page_of(module: str) -> str:
    return ast.get_docstring(parsed(modules()[module])) or ""


def named_in(text: str) -> set[str]:
    """What a page has in backquotes, written as modules are: ``lookup``, ``store.Store``."""
    return set(re.findall(r"(?<!`)`([a-z_][\w.]*)`", text))


def firsts(page: str) -> set[str]:
    return {name.partition(".")[0] for name in named_in(page)}


@cache
def inside(package: str) -> list[str]:
    return [one for one in modules() if one.rpartition(".")[0] == package]


@cache
def defined_in(module: str) -> set[str]:
    found = set()
    for node in ast.walk(parsed(modules()[module])):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def is_there(name: str, package: str) -> bool:
    """Whether a name is a file or definition of a folder, or a module as seen from it or above."""
    if name in ELSEWHERE or (modules()[package].parent / name).is_file():
        return True
    if any(name in defined_in(one) for one in [package, *inside(package)]):
        return True
    parts = name.removeprefix("gossamer.").split(".")
    above = package.split(".") if parts[0] == name.split(".")[0] else ["gossamer"]
    return any(leads_on(".".join(above[:depth]), parts) for depth in range(1, len(above) + 1))


def leads_on(package: str, parts: list[str]) -> bool:
    """Whether a dotted name leads to a module below a package, or to what such a module defines."""
    module = package
    for part in parts:
        if f"{module}.{part}" not in modules():
            return module != package and part in defined_in(module)
        module = f"{module}.{part}"
    return True


@pytest.mark.parametrize(("asked", "name", "file"), RULES)
def test_pages_lead_to_every_rule(asked: str, name: str, file: str) -> None:
    module = f"gossamer.{file.replace('/', '.')}"
    assert name in defined_in(module)
    parts = module.split(".")
    assert f"/gossamer/{parts[1]}`" in DOCUMENT.read_text(encoding="utf-8")
    above = [".".join(parts[:depth]) for depth in range(2, len(parts))]
    for package, part in zip(above, parts[2:], strict=True):
        assert part in firsts(page_of(package)), f"{package} does not name {part}"
    # The pages, or the first paragraph of the file, have most words of the question.
    text = " ".join([*map(page_of, above), page_of(module).partition("\n\n")[0]]).lower()
    words = [word[:5] for word in re.findall(r"[\w-]{4,}", asked.lower())]
    missing = [word for word in words if word.rstrip("s") not in text]
    assert len(missing) * 2 < len(words), f"{file}: no page says {missing}"


def test_every_room_has_something_that_is_asked_for() -> None:
    assert len(RULES) >= 40
    asked = [f"gossamer.{file.replace('/', '.')}." for _, _, file in RULES]
    every = {room for package in DRAWN for room in rooms(package)}
    assert {one for one in every if not any(file.startswith(f"{one}.") for file in asked)} == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_a_page_names_all_that_is_in_its_folder_and_nothing_that_is_gone(package: str) -> None:
    page = page_of(package)
    own = {one.rpartition(".")[2] for one in inside(package)}
    assert own - firsts(page) == set()
    assert {name for name in named_in(page) if not is_there(name, package)} == set()
