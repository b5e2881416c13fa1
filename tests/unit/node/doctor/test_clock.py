"""Whether the doctor tells a clock that is wrong from a certificate that has expired."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gossamer.node.doctor.clock import AHEAD, SUSPICIOUS, Signs, check_own_clock, signs_of_files
from gossamer.node.peer.persistence import LAST_GAP, read_gap
from gossamer.node.store import Store

START, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
SEEN = datetime(2027, 6, 1, tzinfo=UTC)
LAST_RUN = Signs((("state.db", SEEN), ("cluster.json", START)))


def test_a_clock_in_the_future_is_suspected_where_the_certificate_was_valid_at_the_last_run() -> (
    None
):
    finding = check_own_clock(datetime(2036, 6, 1, tzinfo=UTC), START, END, LAST_RUN)
    assert not finding.ok
    assert "clock says 2036-06-01 00:00 UTC; state.db is of 2027-06-01" in finding.what
    assert "unless this peer was off for so long, the clock is ahead" in finding.what
    assert "Set this machine's clock" in finding.advice


def test_a_certificate_that_expired_while_the_peer_was_off_for_days_is_no_clocks_fault() -> None:
    signs = Signs((("state.db", END - timedelta(days=2)),))
    assert check_own_clock(END + timedelta(days=2), START, END, signs).ok
    assert check_own_clock(END + SUSPICIOUS, START, END, signs).ok is False


def test_a_peer_that_ran_beyond_the_end_of_its_certificate_has_an_expired_one() -> None:
    signs = Signs((("state.db", END + timedelta(days=300)),))
    assert check_own_clock(END + timedelta(days=301), START, END, signs).ok


def test_a_clock_that_was_set_forward_while_the_peer_ran_is_suspected() -> None:
    """All files are of the wrong time by then; what the peer noted of the jump is not."""
    now = datetime(2036, 6, 1, tzinfo=UTC)
    signs = Signs((("state.db", now),), gap=(SEEN, now - timedelta(hours=1)))
    finding = check_own_clock(now, START, END, signs)
    assert not finding.ok
    assert "the last run before the clock moved on is of 2027-06-01" in finding.what
    earlier = Signs((("state.db", now),), gap=(START, SEEN))
    assert check_own_clock(now, START, END, earlier).ok


@pytest.mark.parametrize(("behind", "ok"), [(AHEAD / 2, True), (timedelta(days=400), False)])
def test_a_clock_that_is_behind_its_own_files_is_wrong(behind: timedelta, ok: bool) -> None:
    finding = check_own_clock(SEEN - behind, START, END, LAST_RUN)
    assert finding.ok is ok
    assert ("it is behind, or was ahead then" in finding.what) is not ok


def test_where_nothing_is_known_the_clock_is_believed_while_the_certificate_is_valid() -> None:
    assert check_own_clock(SEEN, START, END, Signs()).ok
    assert not check_own_clock(END + SUSPICIOUS, START, END, Signs()).ok


def test_files_tell_when_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.touch()
    os.utime(path, (SEEN.timestamp(), SEEN.timestamp()))
    assert signs_of_files([path, tmp_path / "missing"]) == (("state.db", SEEN),)


def test_what_is_kept_of_a_gap_can_be_read(tmp_path: Path) -> None:
    with Store(tmp_path / "state.db") as store:
        store.set_meta(LAST_GAP, b"[1.0, 86402.5]")
        raw = store.get_meta(LAST_GAP)
    assert raw is not None
    assert [moment.timestamp() for moment in read_gap(raw)] == [1.0, 86402.5]
    for bad in (b"", b"[]", b"[1]", b"{}", b'["a", "b"]', b"[1e300, 2]", b"\xff"):
        with pytest.raises((ValueError, OverflowError)):
            read_gap(bad)
