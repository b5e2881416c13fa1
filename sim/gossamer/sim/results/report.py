"""The one-page report of a run: measures, plots, scenario and seed in a file without links."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from gossamer.sim.results.tables import all_measures
from gossamer.sim.study.plot import Plot
from gossamer.sim.study.records import RunRecord
from gossamer.sim.study.scenarios import study_of_values

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #2b2f36; background: #fff;
  max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; }
h2 { font-size: 1.15rem; margin-top: 2.2rem; border-bottom: 1px solid #e3e6ea; }
.facts { color: #5a616b; margin-top: 0; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid #e3e6ea; text-align: left;
  vertical-align: top; }
td.value, th.value { text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
td.meaning { color: #5a616b; font-size: .87rem; }
td.settings { overflow-wrap: anywhere; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(26rem, 1fr)); gap: 1.5rem; }
figure { margin: 0; } figure.wide { grid-column: 1 / -1; }
figure img { width: 100%; } figcaption { color: #5a616b; font-size: .87rem; }
pre { background: #f6f7f9; padding: .8rem; overflow-x: auto; font-size: .82rem; }
code { overflow-wrap: anywhere; }
"""

_WIDE = frozenset({"overlay"})


def write_report(
    record: RunRecord[Any], summary: Mapping[str, Any], plots: Sequence[Plot], file: Path
) -> None:
    """Write the report of ``record``, whose measures are ``summary``, to ``file``."""
    file.write_text(report_html(record, summary, plots), encoding="utf-8")


def report_html(record: RunRecord[Any], summary: Mapping[str, Any], plots: Sequence[Plot]) -> str:
    """The report as one HTML document that refers to nothing outside itself.

    Args:
        record: the run.
        summary: its measures.
        plots: its plots.
    """
    study = study_of_values(record.scenario)
    title = escape(str(record.scenario.get("name", "Simulation run")))
    return page_html(
        title,
        study.facts(record, summary),
        [
            "<h2>Measures</h2>",
            _measures(summary),
            _bounds(study.too_small(summary["systems"])),
            "<h2>Plots</h2>",
            plots_html(plots),
            study.more(record, summary),
            "<h2>Settings</h2>",
            _settings(summary["systems"]),
            "<h2>Scenario</h2>",
            f"<pre>{escape(record.scenario_text)}</pre>",
            "<h2>How to repeat this run</h2>",
            _provenance(summary),
        ],
    )


def page_html(title: str, facts: str, parts: Sequence[str]) -> str:
    """A page that refers to nothing outside itself; all arguments are HTML."""
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
            f"<h1>{title}</h1>",
            f'<p class="facts">{facts}</p>',
            *parts,
            "</body>\n</html>\n",
        ]
    )


def plots_html(plots: Sequence[Plot]) -> str:
    """Plots side by side."""
    return f'<div class="plots">{"".join(_figure(plot) for plot in plots)}</div>'


def _measures(summary: Mapping[str, Any]) -> str:
    systems = summary["systems"]
    head = "".join(f'<th class="value">{escape(name)}</th>' for name in systems)
    rows = []
    for measure in all_measures([summary]):
        values = "".join(
            f'<td class="value">{measure.format(system.get(measure.key))}</td>'
            for system in systems.values()
        )
        rows.append(
            f"<tr><td>{escape(measure.label)}</td>{values}"
            f'<td class="meaning">{escape(measure.meaning)}</td></tr>'
        )
    return table_html(f"<th>measure</th>{head}<th>what it means</th>", rows)


def _bounds(too_small: Iterable[str]) -> str:
    """What the run has outgrown, nothing where there is none."""
    items = "".join(f"<li>{escape(told)}</li>" for told in too_small)
    return f"<h2>Tables that were too small</h2><ul>{items}</ul>" if items else ""


def _settings(systems: Mapping[str, Mapping[str, Any]]) -> str:
    """One row per setting; settings that differ between the systems come out side by side."""
    names = dict.fromkeys(key for system in systems.values() for key in system["settings"])
    head = "".join(f"<th>{escape(name)}</th>" for name in systems)
    rows = []
    for name in names:
        values = "".join(
            f'<td class="settings">{escape(str(system["settings"].get(name, "-")))}</td>'
            for system in systems.values()
        )
        rows.append(f"<tr><td>{escape(str(name))}</td>{values}</tr>")
    return table_html(f"<th>setting</th>{head}", rows)


def _figure(plot: Plot) -> str:
    data = base64.b64encode(plot.svg).decode("ascii")
    wide = ' class="wide"' if plot.name in _WIDE else ""
    return (
        f'<figure{wide}><img alt="{escape(plot.title)}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption><b>{escape(plot.title)}.</b> {escape(plot.caption)}</figcaption></figure>"
    )


def _provenance(summary: Mapping[str, Any]) -> str:
    rows = [
        f"<tr><td>{escape(name)}</td><td>{escape(str(version))}</td></tr>"
        for name, version in summary["versions"].items()
    ]
    return (
        f"<p>The scenario above with seed {summary['seed']} gives the result hash "
        f"<code>{summary['result_hash']}</code>.</p>"
        + table_html("<th>part</th><th>version</th>", rows)
    )


def table_html(head: str, rows: Sequence[str]) -> str:
    """A table of rows that are HTML."""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
