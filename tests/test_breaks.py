"""Breaks: where nothing was recorded between two records of a user, and nothing is interpolated."""

import copy
import pickle
import warnings
from dataclasses import replace

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import promesse_geo as pg
from tests.naive_breaks import breaks_of

from_frame = pg.Traces.from_frame


def make_frame(users, segments, seconds=None) -> gpd.GeoDataFrame:
    """One record for each user given, a minute apart unless seconds are given, with a column of trips."""
    seconds = np.arange(len(users)) * 60 if seconds is None else seconds
    times = pd.to_datetime(np.asarray(seconds) + 1_700_000_000, unit="s", utc=True)
    points = gpd.points_from_xy(4.8 + np.arange(len(users)) / 1000, [45.7] * len(users))
    return gpd.GeoDataFrame({"user": users, "time": times, "trip": segments}, geometry=points, crs=4326)


records = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.integers(0, 9)), min_size=1, max_size=30)


class TestTraces:
    def test_a_break_is_where_the_segment_changes(self):
        traces = from_frame(make_frame(["a", "a", "b", "b", "a"], [5, 5, 5, 7, 8]), segment="trip")
        assert traces.breaks.tolist() == [2, 4]
        assert traces.segments.tolist() == [0, 2, 3, 4, 5]
        assert traces.segment_numbers.tolist() == [0, 0, 1, 0, 1]
        assert not traces.breaks.flags.writeable
        assert traces.breaks.dtype == np.int64

    def test_traces_without_breaks_have_a_segment_each(self):
        traces = from_frame(make_frame(["a", "b", "a"], [1, 2, 1]), segment="trip")
        assert traces.breaks.tolist() == []
        assert traces.segments.tolist() == traces.offsets.tolist()
        assert "trip" not in traces.to_frame()
        assert "segment" not in traces.to_frame()

    def test_no_record_is_no_segment(self):
        traces = from_frame(make_frame([], []), segment="trip")
        assert traces.segments.tolist() == [0]
        assert traces.segment_numbers.tolist() == []

    @pytest.mark.parametrize(
        "values", [["x", "y"], [1.5, np.nan], [True, False], [None, "x"], [pd.NaT, pd.Timestamp(0)]]
    )
    def test_segments_are_values_of_any_type(self, values):
        assert from_frame(make_frame(["a"] * 2, values), segment="trip").breaks.tolist() == [1]
        assert from_frame(make_frame(["a"] * 2, values[:1] * 2), segment="trip").breaks.tolist() == []

    def test_arrays_may_have_segments(self):
        parts = {"times": np.arange(4), "users": ["a", "b"], "counts": np.array([3, 1])}
        traces = pg.Traces.from_arrays(np.arange(4.0), np.zeros(4), segments=np.array([3, 1, 1, 0]), **parts)
        assert traces.breaks.tolist() == [1]
        for wrong in (np.zeros(3, int), np.zeros(4), np.ma.masked_array([1, 1, 2, 2], [0, 0, 0, 1])):
            with pytest.raises((ValueError, TypeError), match="segments of Traces"):
                pg.Traces.from_arrays(np.arange(4.0), np.zeros(4), segments=wrong, **parts)

    def test_an_invalid_record_hands_its_break_on(self):
        frame = make_frame(["a"] * 5, [0, 0, 1, 1, 1])
        frame.loc[2, "geometry"] = None
        with pytest.warns(UserWarning, match="1 record of 5 dropped"):
            traces = from_frame(frame, segment="trip", errors="drop")
        assert traces.breaks.tolist() == [2]

    @given(records, st.data())
    def test_breaks_are_those_of_the_twin(self, rows, data):
        users, trips, seconds = (list(column) for column in zip(*rows, strict=True))
        traces = from_frame(make_frame(users, trips, seconds), segment="trip")
        keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
        segments = [
            f"{user}{number}" for user, number in zip(traces.trace_numbers, traces.segment_numbers, strict=True)
        ]
        assert traces.breaks.tolist() == breaks_of(traces.trace_numbers, [trips[row] for row in traces.positions])
        kept = traces.select(keep)
        owners = traces.trace_numbers[keep]
        assert kept.breaks.tolist() == breaks_of(owners, [segments[row] for row in np.flatnonzero(keep)])

    def test_copies_and_pickles_keep_breaks(self):
        traces = from_frame(make_frame(["a"] * 3, [0, 1, 1]), segment="trip")
        for same in (
            copy.deepcopy(traces),
            pickle.loads(pickle.dumps(traces)),
            replace(traces, times=traces.times + 1),
        ):
            assert same.breaks.tolist() == [1]
            assert not same.breaks.flags.writeable

    def test_breaks_of_a_mechanism_are_checked(self):
        class Halve(pg.Mechanism):
            def _protect(self, traces):
                half = traces.select(np.arange(traces.records) < 2)
                return replace(half, breaks=traces.breaks)

        traces = from_frame(make_frame(["a"] * 5, [0, 0, 0, 1, 1]), segment="trip")
        with pytest.raises(ValueError, match="breaks"):
            Halve().protect(traces)


class TestRoles:
    def test_a_frame_with_breaks_is_read_again_without_a_word(self):
        traces = from_frame(make_frame(["a", "a", "b", "b", "a"], [5, 5, 5, 7, 8]), segment="trip")
        frame = traces.to_frame()
        assert list(frame.columns) == ["user", "time", "trip", "geometry"]
        assert frame["trip"].tolist() == [0, 0, 1, 0, 1]
        assert frame["trip"].dtype == np.int64
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert from_frame(frame).breaks.tolist() == traces.breaks.tolist()

    def test_a_foreign_column_is_no_segment_unless_specified(self):
        frame = make_frame(["a"] * 2, [0, 1]).rename(columns={"trip": "segment"})
        with pytest.warns(UserWarning, match="'segment' was dropped"):
            assert len(from_frame(frame).breaks) == 0
        assert from_frame(frame, segment="segment").breaks.tolist() == [1]

    def test_no_segment_can_be_specified(self):
        frame = from_frame(make_frame(["a"] * 2, [0, 1]), segment="trip").to_frame()
        for read in (lambda: from_frame(frame, segment=None), frame.promesse(segment=None).traces):
            with pytest.warns(UserWarning, match="'trip' was dropped"):
                assert len(read().breaks) == 0

    def test_names_travel_with_the_frame(self):
        frame = make_frame(["a"] * 3, [0, 1, 1]).rename(columns={"user": "cab", "time": "stamp"})
        read = from_frame(frame, user="cab", time="stamp", segment="trip").to_frame()
        assert read.attrs["promesse"] == {"user": "cab", "time": "stamp", "segment": "trip"}
        moved = read.promesse.collapse_empty_days()
        assert list(moved.columns) == ["cab", "stamp", "trip", "geometry"]
        assert from_frame(moved.rename(columns={"stamp": "time"})).breaks.tolist() == [1]

    @pytest.mark.parametrize("attrs", [None, 7, {"user": "gone"}, {"segment": ["trip"]}, {"time": None}])
    def test_roles_without_a_column_are_found_anew(self, attrs):
        frame = make_frame(["a"] * 3, [0, 1, 1])[["user", "time", "geometry"]]
        frame.attrs["promesse"] = attrs
        assert from_frame(frame).names == pg.Traces.from_frame(frame, user="user", time="time").names

    def test_a_time_index_stays_one(self):
        frame = make_frame(["a"] * 3, [0, 1, 1]).set_index("time")
        read = from_frame(frame, segment="trip").to_frame()
        assert read.index.name == "time"
        assert from_frame(read).breaks.tolist() == [1]
        assert from_frame(read.rename_axis(None)).breaks.tolist() == [1]

    def test_the_column_of_segments_has_a_free_name(self):
        frame = make_frame(["a"] * 3, [0, 1, 1]).rename(columns={"user": "segment"})
        traces = from_frame(frame, user="segment", segment="trip")
        named = replace(traces, names=replace(traces.names, segment=None)).to_frame()
        assert list(named.columns) == ["segment", "time", "segment_number", "geometry"]

    def test_the_accessor_takes_a_segment(self):
        frame = make_frame(["a"] * 3, [0, 1, 1])
        assert frame.promesse(segment="trip").traces().breaks.tolist() == [1]
        assert "promesse" not in frame.attrs
        with pytest.raises(KeyError, match="segment column 'tour' does not exist"):
            frame.promesse(segment="tour")

    def test_an_audit_takes_roles_for_no_other_column(self):
        frame = pg.make_city(users=2, days=2).assign(trip=0)
        frame.loc[len(frame) // 4 :, "trip"] = 1
        frame = frame.promesse(segment="trip").traces().to_frame()
        table = frame.promesse.check(frame).set_index("test")
        assert table.verdict[["no other columns", "no attributes"]].tolist() == ["passed", "passed"]

    def test_traces_have_no_columns(self):
        traces = from_frame(make_frame(["a"] * 3, [0, 1, 1]), segment="trip")
        with pytest.raises(TypeError, match="segment"):
            pg.split_gaps(traces, segment="trip")
