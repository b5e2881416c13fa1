"""The pictures of docs/gallery.md are those that the lines above them draw."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from support.gallery import LARGEST, PAGE, draw, sections

FOLDER = PAGE.with_suffix("")


def test_twelve_pictures_are_kept_each_with_what_draws_it() -> None:
    found = sections()
    assert len(found) == 12
    assert all(bool(one.code) != bool(one.command) for one in found)
    files = [PAGE.parent / one.picture for one in found]
    assert len({*files}) == 12
    assert {*FOLDER.iterdir()} == {file for file in files if file.parent == FOLDER}
    assert all(file.stat().st_size <= LARGEST for file in files)
    assert sum(file.stat().st_size for file in files) < 700_000


@pytest.mark.campaign
def test_pictures_are_as_they_are_drawn(tmp_path: Path) -> None:
    """As far as another release of Matplotlib draws the same."""
    drawn = list(draw(tmp_path))
    assert {path.name for path in drawn} == {path.name for path in FOLDER.iterdir()}
    for path in drawn:
        made, kept = imread(path), imread(FOLDER / path.name)
        assert made.shape == kept.shape, path.name
        assert float(np.abs(made - kept).mean()) < 0.02, path.name
