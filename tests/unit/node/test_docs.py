"""What the pages on nodes and the README say of the node is what there is."""

from __future__ import annotations

import re
from collections.abc import Iterable

import attrs
import pytest
from typer import Typer

from gossamer.client.frames import VERSION as CLIENT_VERSION
from gossamer.node.broker.families.graph import GraphHost
from gossamer.node.broker.families.graph_settings import GraphSection
from gossamer.node.broker.families.scot import ScotHost
from gossamer.node.broker.families.scot_links import SCOT_FRAMES
from gossamer.node.broker.families.scot_settings import ScotSection
from gossamer.node.broker.wire import OVERLAY_FRAMES
from gossamer.node.cli.node import app, pub_app, sub_app, top_app
from gossamer.node.cli.requests import advertise_app, batch_app, unsub_app
from gossamer.node.commands.backup.archive import FORMAT as BACKUP_FORMAT
from gossamer.node.config.node import SECTIONS
from gossamer.node.local.frames import LOCAL_TYPES
from gossamer.node.monitoring.metrics import METRICS
from gossamer.node.store.database import MIGRATIONS
from gossamer.node.transport.frames import CONTROL_FRAMES
from gossamer.node.transport.handshake import PROTOCOL_VERSION
from gossamer.protocol.brokers.core.broker import FORMAT as DUMP_FORMAT
from gossamer.protocol.brokers.graph.state import Counters as GraphCounters
from gossamer.protocol.brokers.graph.state import TableSizes
from gossamer.protocol.brokers.scot.settings import Counters as ScotCounters
from gossamer.protocol.brokers.tree.state import Counters
from gossamer.protocol.content import limits
from gossamer.protocol.content.filters.language import MAX_COMPARISONS
from gossamer.protocol.content.grammar import MAX_TEXT
from support.checkout import ROOT
from support.pasted_blocks import section as section_of

PAGES = ("node.md", "promises.md", "security.md", "monitoring.md", "local-protocol.md")
DOCS = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in PAGES)
BROKER_DOCS = (ROOT / "docs/broker-node.md").read_text(encoding="utf-8")
SCOT_DOCS = (ROOT / "docs/scot-node.md").read_text(encoding="utf-8")
GRAPH_DOCS = (ROOT / "docs/graph-brokers.md").read_text(encoding="utf-8")
UPGRADE_NOTES = (ROOT / "docs/upgrading.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def missing(page: str, names: Iterable[str]) -> set[str]:
    return {name for name in names if f"`{name}`" not in page}


def fields_of(kind: type[attrs.AttrsInstance]) -> set[str]:
    return {field.name for field in attrs.fields(kind)}


def test_every_metric_is_listed_with_its_meaning() -> None:
    for metric in METRICS:
        name = metric.name + ("_total" if metric.kind == "counter" else "")
        label = f"{{{metric.label}}}" if metric.label else ""
        assert f"| `{name}{label}` | {metric.kind} | {metric.help} |" in DOCS


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.SECTION)
def test_every_setting_is_listed(section: type) -> None:
    (row,) = re.findall(rf"(?m)^\| `\[{section.SECTION}\]` \| (.*) \|$", DOCS)  # type: ignore[attr-defined]
    known = [field.name for field in attrs.fields(section) if field.name != "settings"]
    assert re.findall(r"`(\w+)`", row) == known


def names_in(commands: Typer) -> set[str]:
    return {one.callback.__name__ for one in commands.registered_commands if one.callback}


def test_every_command_and_frame_is_described() -> None:
    for name in names_in(app) - {"stop"}:
        assert f"`gossamer node {name}" in DOCS
    brokers = (advertise_app, unsub_app, batch_app)
    for page, apps in ((DOCS, (sub_app, pub_app, top_app)), (BROKER_DOCS, brokers)):
        for one in apps:
            (name,) = names_in(one)
            assert f"`gossamer {name} " in page
    assert not missing(DOCS, LOCAL_TYPES)


def test_what_there_is_for_brokers_of_each_family_is_described() -> None:
    assert not missing(BROKER_DOCS, fields_of(Counters))
    assert missing(BROKER_DOCS, OVERLAY_FRAMES) <= set(CONTROL_FRAMES)
    assert missing(SCOT_DOCS, SCOT_FRAMES) <= set(OVERLAY_FRAMES)
    assert not missing(SCOT_DOCS, fields_of(ScotSection) | set(ScotHost.counted))
    assert set(ScotHost.counted) == fields_of(ScotCounters)
    names = fields_of(GraphSection) | set(GraphHost.counted) | fields_of(TableSizes)
    assert not missing(GRAPH_DOCS, names)
    assert set(GraphHost.counted) == fields_of(GraphCounters)


def test_every_format_is_in_the_upgrade_notes_with_its_version() -> None:
    """Whoever raises one writes a note of what the change asks for."""
    versions = {
        "the protocol between nodes": PROTOCOL_VERSION,
        "the client protocol of the local socket": CLIENT_VERSION,
        "the state files `state.db`, `clients.db`": len(MIGRATIONS),
        "dumps of brokers in `state.db`": DUMP_FORMAT,
        "the file that `gossamer node backup` writes": BACKUP_FORMAT,
    }
    for what, version in versions.items():
        assert f"| {what} | {version} |" in UPGRADE_NOTES
    notes = UPGRADE_NOTES.partition("## Notes by version")[2]
    assert f"Protocol between nodes {PROTOCOL_VERSION}, client protocol {CLIENT_VERSION}," in notes


def test_the_limits_of_events_and_requests_are_said_as_they_are() -> None:
    rows = (
        ("a string", f"{limits.MAX_STRING:,} characters (longer data are a payload)"),
        ("a number", f"{limits.MAX_DIGITS:,} digits, and numerator and denominator each"),
        (
            "a payload; an event with all its values",
            f"{limits.MAX_PAYLOAD_BYTES >> 10} KiB; {limits.MAX_EVENT_BYTES >> 10} KiB",
        ),
        ("a content type", f"{limits.MAX_CONTENT_TYPE} characters"),
        (
            "the name of an attribute, a client, a label or a queue group",
            f"{limits.MAX_NAME} characters",
        ),
        (
            "an expression; a composite subscription",
            f"{MAX_TEXT:,} characters and {MAX_COMPARISONS} comparisons; "
            f"{limits.MAX_EXPRESSION:,} characters",
        ),
        (
            "at a broker without a schema: attributes of an event, and the name of one",
            f"{limits.MAX_ANY_ATTRIBUTES}; {limits.MAX_ANY_NAME:,} characters",
        ),
    )
    said = section_of(DOCS, "What is too large").splitlines()
    assert [line for line in said if line.startswith("| ")][1:] == [
        f"| {what} | {most} |" for what, most in rows
    ]


def test_the_readme_has_five_commands() -> None:
    commands = re.findall(r"(?m)^    gossamer (\w+) .*$", section_of(README, "Peers of your own"))
    assert commands == ["node", "node", "sub", "pub", "top"]
