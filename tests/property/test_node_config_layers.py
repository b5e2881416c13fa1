"""Of all layers that set something, the last one wins and is named as its origin."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from gossamer.node.config.file import load_config
from gossamer.node.config.node import PRESETS

NUMBERS = {
    "delivery.successors": (0, 16),
    "delivery.event_memory": (1, 65536),
    "delivery.retention_s": (0, 86400),
    "discovery.found_limit": (1, 65536),
    "protocol.round_s": (1, 3600),
    "protocol.peers_expected": (2, 1000),
    "protocol.ring_links": (1, 16),
    "limits.frame_bytes": (0, 100),
}
layers = st.fixed_dictionaries(
    {}, optional={name: st.integers(*bounds) for name, bounds in NUMBERS.items()}
)


@given(preset=st.sampled_from(sorted(PRESETS)), file=layers, environment=layers, flags=layers)
def test_the_later_layer_wins(
    preset: str, file: dict[str, int], environment: dict[str, int], flags: dict[str, int]
) -> None:
    variables = {
        f"GOSSAMER_NODE_{name.replace('.', '_').upper()}": str(value)
        for name, value in environment.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "node.toml")
        lines = [f"{name} = {value}\n" for name, value in file.items()]
        path.write_text(f'preset = "{preset}"\n' + "".join(lines))
        loaded = load_config(path, variables, flags)
    values = {name: value for name, value, _ in loaded.rows()}
    stack: list[tuple[str, Mapping[str, object]]] = [
        ("preset", PRESETS[preset]),
        ("file", file),
        ("environment", environment),
        ("flag", flags),
    ]
    for name in NUMBERS:
        setting = [(source, layer[name]) for source, layer in stack if name in layer]
        source, expected = setting[-1] if setting else ("default", values.get(name))
        assert values.get(name) == expected
        assert loaded.origin(name).source == source
