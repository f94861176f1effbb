"""Local times that a change of the clocks skips or repeats."""

from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import HEADER, csv_of

import promesse_geo as pg
from promesse_geo.io.table_times import in_zone

PARIS = ZoneInfo("Europe/Paris")
AUTUMN = pd.Timestamp("2024-10-26 22:00", tz="UTC")  # midnight in Paris


def read(tmp_path, clocks, **choices):
    rows = [f"{user},2024-{text},4.8,45.7" for user, text in clocks]
    return pg.read_file(csv_of(tmp_path, HEADER, *rows), tz="Europe/Paris", as_traces=True, **choices)


def test_an_hour_that_is_repeated_is_read_by_the_order_of_records(tmp_path):
    clocks = [f"10-27T{text}" for text in ("01:50", "02:10", "02:50", "02:10", "02:40", "03:00")]
    traces = read(tmp_path, [(user, clock) for clock in clocks for user in ("a", "b")])
    expected = pd.to_datetime([f"2024-10-{text}Z" for text in (
        "26T23:50", "27T00:10", "27T00:50", "27T01:10", "27T01:40", "27T02:00")])  # fmt: skip
    assert traces.times.tolist() == [*expected.as_unit("ns").asi8] * 2


@pytest.mark.parametrize(
    ("clocks", "count", "row"),
    [
        (["10-27T01:50", "10-27T02:30", "10-27T03:10"], 1, 1),  # once: the first or the second
        (["10-27T02:50", "10-27T02:10", "10-27T02:40", "10-27T02:20"], 4, 0),  # in no order
        (["10-27T02:50", "10-27T02:10", "10-27T01:00"], 2, 0),
        (["03-31T01:50", "03-31T02:30", "03-31T03:10"], 1, 1),  # skipped
    ],
)
def test_other_times_of_a_change_are_counted_with_the_reason(clocks, count, row, tmp_path):
    rows = [("a", clock) for clock in clocks]
    words = rf"change of the clocks skips or repeats: write its offset from UTC: {count}, first in row {row}"
    with pytest.raises(ValueError, match=words):
        read(tmp_path, rows)
    if count < len(rows):
        with pytest.warns(UserWarning, match="change of the clocks"):
            assert read(tmp_path, rows, errors="skip").records == len(rows) - count


def test_times_that_cannot_be_read_have_their_own_reason(tmp_path):
    rows = [("a", clock) for clock in ("03-31T02:30", "nothing", "06-01T12:00")]
    with pytest.raises(ValueError, match=r"cannot be read: 1, first in row 1.*clocks .*: 1, first in row 0"):
        read(tmp_path, rows)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 360)), max_size=12))
def test_times_are_the_true_ones_or_none(moments):
    """In the order of time, a repeated hour is never read as another one than it was."""
    moments = sorted(moments, key=lambda each: each[1])
    users = np.array([user for user, _ in moments], np.int64)
    true = pd.Series(AUTUMN + pd.to_timedelta([minute for _, minute in moments], unit="min")).dt.tz_convert(PARIS)
    local = true.dt.tz_localize(None)
    found, lost = in_zone(local, PARIS, users)
    lost = np.zeros(len(users), bool) if lost is None else lost
    assert found.isna().tolist() == lost.tolist()
    assert (found[~lost] == true[~lost]).all()
    for user in range(3):
        mine = local[users == user]
        assert lost[users == user].any() == _is_unsure(mine)


def _is_unsure(clocks):
    """Whether some times are repeated ones, and the clock does not go back among them."""
    is_repeated = clocks.dt.hour == 2
    return bool(is_repeated.any() and not (clocks[is_repeated].diff() < pd.Timedelta(0)).any())
