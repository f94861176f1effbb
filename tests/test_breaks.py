"""Breaks: where nothing was recorded between two records of a user, and nothing is interpolated."""

import copy
import pickle
import warnings
from dataclasses import dataclass, replace

import geopandas as gpd
import numba
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from instances import MECHANISMS, instance_of
from naive_breaks import breaks_of
from naive_metrics import spatial_error
from strategies import gathered, walks

import promesse_geo as pg
from promesse_geo.cli import main
from promesse_geo.plot import overview, space_time, speeds
from promesse_geo.plot.layers import Projection, record_layer
from promesse_geo.plot.tables import description

from_frame = pg.Traces.from_frame
MANY = 300 if numba.config.DISABLE_JIT else 30_000


def make_frame(users, segments, seconds=None) -> gpd.GeoDataFrame:
    """One record for each user given, a minute apart unless seconds are given, with a column of trips."""
    seconds = np.arange(len(users)) * 60 if seconds is None else seconds
    times = pd.to_datetime(np.asarray(seconds) + 1_700_000_000, unit="s", utc=True)
    points = gpd.points_from_xy(4.8 + np.arange(len(users)) / 1000, [45.7] * len(users))
    return gpd.GeoDataFrame({"user": users, "time": times, "trip": segments}, geometry=points, crs=4326)


records = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.integers(0, 9)), min_size=1, max_size=30)


@dataclass(frozen=True)
class Broken:
    """Traces with breaks; the same segments as traces of users 0, 1, 2 …, and the user of each."""

    traces: pg.Traces
    alone: pg.Traces
    users: list[int]
    epsilon: float


@st.composite
def broken(draw: st.DrawFn) -> Broken:
    """Walks of up to three users, cut anywhere; a segment may be one record."""
    space, epsilon = draw(st.sampled_from(("sphere", "plane"))), draw(st.sampled_from((1.0, 200.0)))
    whole = gathered(draw(st.lists(walks(space=space, epsilon=epsilon), min_size=1, max_size=3)))
    begins = np.array(draw(st.lists(st.booleans(), min_size=whole.records, max_size=whole.records)))
    breaks = np.setdiff1d(np.flatnonzero(begins), whole.offsets)
    traces = replace(whole, breaks=breaks)
    users = traces.users.take(traces.segment_owners).tolist()
    alone = replace(whole, offsets=traces.segments, users=pd.RangeIndex(len(users)))
    return Broken(traces, alone, users, epsilon)


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


@pytest.mark.compiled
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

    def test_segments_of_a_result_that_lost_its_attributes_are_no_secret(self, tmp_path):
        frame = from_frame(make_frame(["a"] * 3, [0, 1, 1]).rename(columns={"trip": "segment"}), segment="segment")
        lost = pd.DataFrame(frame.to_frame()).set_geometry("geometry")
        lost.attrs = {}
        words = r"'segment' was dropped.* If 'segment' numbers .*, specify it, as in gdf.promesse\(segment='segment'\)"
        for verb in (lost.promesse.split_gaps, lambda: pg.write(lost, tmp_path / "lost.parquet")):
            with pytest.warns(UserWarning, match=words):
                verb()
        for verb in (lost.promesse.pois, lambda: lost.promesse.measure(lost, [pg.Compression()])):
            with pytest.warns(UserWarning, match=r"'segment' is not used\..* as in gdf.promesse\(segment='segment'\)"):
                verb()
        with pytest.warns(UserWarning, match="'segment' was dropped: traces hold user, time and location.$"):
            from_frame(lost, segment=None)
        lost.promesse(segment="segment").measure(lost.promesse(segment="segment").traces(), [pg.Compression()])
        named = lost.rename(columns={"user": "segment", "segment": "segment_number"})
        with pytest.warns(UserWarning, match="If 'segment_number' numbers segments"):
            from_frame(named, user="segment")

    def test_no_segment_can_be_specified(self):
        frame = from_frame(make_frame(["a"] * 2, [0, 1]), segment="trip").to_frame()
        for read in (lambda: from_frame(frame, segment=None), frame.promesse(segment=None).traces):
            with pytest.warns(UserWarning, match="'trip' was dropped"):
                assert len(read().breaks) == 0
        trips = make_frame(["a"] * 2, [0, 1]).rename(columns={"trip": "trip_id"})
        assert from_frame(trips).breaks.tolist() == [1]
        for each in (trips, trips.assign(lon=4.8, lat=45.7, geometry=None).drop(columns="geometry")):
            with pytest.warns(UserWarning, match="'trip_id' was dropped"):
                assert len(each.promesse(segment=None).traces().breaks) == 0
        with warnings.catch_warnings(action="error"):
            trips.rename(columns={"trip_id": "segment"}).promesse(segment=None).pois()

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

    def test_points_of_movingpandas_trajectories_are_read(self):
        frame = make_frame(["a"] * 4, ["a_0", "a_0", "a_1", "a_1"]).rename(
            columns={"user": "person", "trip": "traj_id"}
        )
        points = frame.set_index(frame.pop("time").dt.tz_localize(None).rename("t"))
        points = points.promesse(user="person", segment="traj_id").traces()
        assert points.breaks.tolist() == [2]
        assert points.to_frame()["traj_id"].tolist() == [0, 0, 1, 1]

    def test_an_audit_takes_roles_for_no_other_column(self):
        frame = pg.make_city(users=2, days=2, recorder="phone").assign(trip=0)
        frame.loc[len(frame) // 4 :, "trip"] = 1
        frame = frame.promesse(segment="trip").traces().to_frame()
        table = frame.promesse.check(frame).set_index("test")
        assert table.verdict[["no other columns", "no attributes"]].tolist() == ["passed", "passed"]

    def test_traces_have_no_columns(self):
        traces = from_frame(make_frame(["a"] * 3, [0, 1, 1]), segment="trip")
        with pytest.raises(TypeError, match="segment"):
            pg.split_gaps(traces, segment="trip")


def make_tracks(counts, *, users=None, shift=0.05, crs=4326) -> gpd.GeoDataFrame:
    """Straight tracks of records 78 m and a minute apart, each `shift` degrees north of the one before."""
    numbers = np.repeat(np.arange(len(counts)), counts)
    steps = np.concatenate([np.arange(count) for count in counts])
    times = pd.to_datetime(1_700_000_000 + 60 * np.arange(len(steps)), unit="s", utc=True)
    owners = np.asarray(["a"] * len(counts) if users is None else users)[numbers]
    points = gpd.points_from_xy(4.8 + 0.001 * steps, 45.7 + shift * numbers)
    frame = gpd.GeoDataFrame({"user": owners, "time": times, "trip": numbers}, geometry=points, crs=4326)
    return frame.to_crs(crs)


class TestSplitting:
    def test_traces_are_split_at_breaks_whatever_the_gap(self):
        frame = make_tracks([3, 4, 2], users=["a", "a", "b"])
        parts = pg.split_gaps(frame, "4h", keep_user=True, segment="trip")
        assert parts["user"].value_counts(sort=False).to_dict() == {"a-00000": 3, "a-00001": 4, "b-00000": 2}
        assert list(parts.columns) == ["user", "time", "geometry"]
        prepared = pg.prepare(frame, tz="UTC", keep_user=True, segment="trip")
        assert prepared["user"].tolist() == parts["user"].tolist()

    @pytest.mark.parametrize("crs", [4326, 2154])
    def test_traces_are_split_at_distances(self, crs):
        frame = make_tracks([3, 4, 2], crs=crs).drop(columns="trip")
        step = 5_500  # a little less than from one track to the next
        assert pg.split_gaps(frame, distance=step)["user"].nunique() == 3
        assert frame.pipe(pg.split_gaps, "4h", distance=2 * step)["user"].unique().size == 1
        assert frame.promesse.split_gaps("4h", distance=70)["user"].nunique() == 9

    def test_a_trace_is_split_at_more_than_the_distance(self):
        points = gpd.points_from_xy([0, 3, 3], [0, 4, 10])
        frame = gpd.GeoDataFrame({"user": "a", "time": pd.to_datetime([0, 1, 2], unit="s")}, geometry=points, crs=2154)
        traces = from_frame(frame, space="plane")
        assert [pg.split_gaps(traces, distance=metres).records for metres in (5, 6)] == [3, 3]
        assert [len(pg.split_gaps(traces, distance=metres)) for metres in (4.9, 5, 5.9, 6)] == [3, 2, 2, 1]

    @pytest.mark.parametrize("distance", [0, -1, np.nan, "far", True])
    def test_a_distance_is_a_number_of_metres(self, distance):
        with pytest.raises((ValueError, TypeError), match="distance"):
            pg.split_gaps(make_tracks([2]), distance=distance)

    def test_the_calendar_keeps_breaks(self):
        traces = from_frame(make_tracks([3, 4]), segment="trip")
        assert pg.collapse_empty_days(traces).breaks.tolist() == [3]
        assert pg.first_days(traces, days=1).breaks.tolist() == [3]

    def test_each_segment_gets_a_pseudonym(self):
        frame = make_tracks([3, 4, 2], users=["a", "a", "b"])
        traces = from_frame(frame, segment="trip")
        renamed = pg.pseudonymize(traces, seed=1)
        assert sorted(renamed.counts.tolist()) == [2, 3, 4]
        assert len(renamed.breaks) == 0
        whole = pg.pseudonymize(replace(traces, breaks=traces.breaks[:0]), seed=1)
        assert len(set(whole.users) & set(renamed.users)) == 1  # that of the user without breaks
        assert "segment" not in pg.pseudonymize(frame, segment="trip")


class TestMechanisms:
    @pytest.mark.parametrize("variant", ["polyline", "pseudocode"])
    def test_nothing_is_published_between_segments(self, variant):
        frame = make_tracks([10, 10, 2, 12])
        with pytest.warns(UserWarning, match=r"3 breaks.*4 segments.*0 of 1 trace and 1 of 4 segments") as caught:
            safe = pg.Promesse(100, variant=variant).protect(frame, segment="trip")
        assert len(caught) == 1
        assert safe["trip"].value_counts(sort=False).to_dict() == {0: 5, 1: 5, 2: 7}
        tracks = safe.geometry.y.groupby(safe["trip"]).agg(["min", "max"])
        assert np.allclose(tracks["min"], [45.7, 45.75, 45.85], atol=1e-5)
        assert np.allclose(tracks["max"], [45.7, 45.75, 45.85], atol=1e-5)

    @pytest.mark.filterwarnings("ignore:The data have")
    def test_traces_without_segments_that_are_long_enough_are_dropped(self):
        frame = make_tracks([2, 3, 9, 2], users=["a", "a", "b", "b"])
        with pytest.warns(UserWarning, match="1 of 2 traces and 3 of 4 segments could not be protected"):
            safe = pg.Promesse(100).protect(frame, segment="trip")
        assert safe["user"].unique().tolist() == ["b"]
        with pytest.warns(UserWarning, match="Nothing is left"):
            assert len(pg.Promesse(9_000).protect(frame, segment="trip")) == 0

    @pytest.mark.filterwarnings("ignore:.*could not be protected", "ignore:The data have")
    @given(broken(), st.sampled_from(["polyline", "pseudocode"]), st.integers(1, 3))
    def test_segments_are_smoothed_as_traces_of_their_own(self, walk, variant, least):
        mechanism = pg.Promesse(walk.epsilon, variant=variant, min_points=least)
        traces, alone = walk.traces, walk.alone
        safe, expected = mechanism.protect(traces), mechanism.protect(alone)
        assert np.array_equal(safe.points, expected.points)
        assert np.array_equal(safe.times, expected.times)
        assert np.array_equal(safe.segments, expected.offsets)
        assert safe.users.take(safe.segment_owners).tolist() == [walk.users[number] for number in expected.users]
        points, counts = mechanism.samples(traces)
        wanted, numbers = mechanism.samples(alone)
        assert np.array_equal(points, wanted)
        assert np.array_equal(counts, numbers)

    def test_noise_keeps_breaks_and_adds_the_same_noise(self):
        frame = make_tracks([3, 4])
        noisy = pg.GeoIndistinguishability(0.01, seed=1).protect(frame, segment="trip")
        assert noisy["trip"].tolist() == [0] * 3 + [1] * 4
        plain = pg.GeoIndistinguishability(0.01, seed=1).protect(frame.drop(columns="trip"))
        assert noisy.geometry.equals(plain.geometry)

    def test_wait_for_me_needs_split_traces(self):
        frame = make_tracks([9, 9, 9], users=["a", "a", "b"])
        with pytest.raises(ValueError, match="Got 1 break"):
            pg.WaitForMe(2, 20_000).protect(frame, segment="trip")
        split = pg.split_gaps(frame, segment="trip", seed=1)
        assert len(pg.WaitForMe(2, 20_000, max_trash=0, seed=1).protect(split)) > 0


@pytest.mark.filterwarnings("ignore:.*could not be protected", "ignore:The data have", "ignore:Privacy zones removed")
@pytest.mark.parametrize("kind", [each for each in pg.Mechanism.__subclasses__() if hasattr(pg, each.__name__)])
def test_no_mechanism_publishes_points_between_segments(kind):
    mechanism = instance_of(kind)
    most = MECHANISMS[mechanism]
    traces = from_frame(make_tracks([10, 30, 1, 20, 15], users=list("aaabb"), shift=0.1), segment="trip")
    if most is None:
        with pytest.raises(ValueError, match="Got 3 breaks"):
            mechanism.protect(traces)
        return
    safe = mechanism.protect(traces)
    assert len(safe.breaks) > 0
    latitudes = safe.coordinates()[1]
    off = np.abs(latitudes[:, None] - [45.7, 45.8, 45.9, 46.0, 46.1]).min(axis=1)
    assert off.max() * 111_195 < most + 20  # an arc of 2 km bends by less
    assert pg.SpatialError().detail(traces, safe).max() < most


class TestMetrics:
    def test_a_stay_does_not_end_at_a_break(self):
        frame = make_tracks([20]).assign(geometry=gpd.points_from_xy([4.8] * 20, [45.7] * 20, crs=4326))
        frame["trip"] = [0] * 10 + [1] * 10
        (stay,) = from_frame(frame, segment="trip").to_frame().promesse.pois().itertuples()
        assert stay.records == 20

    def test_residues_are_those_of_the_segments(self):
        frame = make_tracks([10, 12, 1])
        traces = from_frame(frame, segment="trip")
        found = pg.Residue().find(traces)
        alone = pg.Residue().find(frame.drop(columns="user").rename(columns={"trip": "user"}))
        assert found["user"].tolist() == ["a"] * 5
        assert found["kind"].tolist() == ["start", "end", "start", "end", "start"]
        assert found.geometry.geom_equals_exact(alone.geometry, 1e-9).all()

    def test_noise_is_not_estimated_across_breaks(self):
        city = pg.make_city(users=3, days=2, as_traces=True, recorder="phone")
        noisy = pg.GeoIndistinguishability(0.01, seed=1).protect(city)
        attack = pg.AdaptivePoiRetrieval(kind="geo-indistinguishability")
        pairs = np.arange(1, city.records, 2)
        broken = replace(noisy, breaks=np.setdiff1d(pairs, noisy.offsets))
        assert attack.noise(noisy) == pytest.approx(200, rel=0.3)
        assert attack.noise(broken) == 0  # no three records in a row

    def test_data_with_other_breaks_is_other_data(self):
        traces = from_frame(make_tracks([3, 4]), segment="trip")
        joined = replace(traces, breaks=traces.breaks[:0])
        index = pg.SpatialError().index(joined)
        with pytest.raises(ValueError, match="index"):
            pg.SpatialError().detail(traces, traces, index=index)

    @pytest.mark.filterwarnings("ignore:.*could not be protected", "ignore:The data have")
    @given(broken(), st.integers(0, 2**32 - 1))
    def test_spatial_error_is_the_least_over_the_segments(self, walk, seed):
        traces, metric = walk.traces, pg.SpatialError()
        rng = np.random.default_rng(seed)
        shaken = traces.points + rng.normal(0, 2 * walk.epsilon / traces.space.scale, traces.points.shape)
        if traces.space.curvature:
            shaken /= np.linalg.norm(shaken, axis=1, keepdims=True)
        moved = replace(traces, points=shaken)
        least = np.full(traces.records, np.inf)
        alone, segments = list(map(tuple, traces.points.tolist())), traces.segments.tolist()
        for number, owner in enumerate(traces.segment_owners):
            line = alone[segments[number] : segments[number + 1]]
            for row in range(traces.offsets[owner], traces.offsets[owner + 1]):
                least[row] = min(least[row], spatial_error(tuple(shaken[row].tolist()), line))
        assert metric.detail(traces, moved).to_numpy() == pytest.approx(least, rel=1e-9, abs=2e-7)
        safe = pg.Promesse(walk.epsilon).protect(traces)
        assert metric.detail(traces, safe).max() < 1e-5 or not safe.records

    def test_a_point_between_segments_is_off_the_path(self):
        frame = make_tracks([3, 1, 3])
        middle = frame.iloc[:1].drop(columns="trip").set_geometry(gpd.points_from_xy([4.801], [45.72], crs=4326))
        traces = from_frame(frame, segment="trip")
        assert pg.SpatialError().detail(traces, from_frame(middle)).iloc[0] == pytest.approx(2_223.9, abs=0.1)
        foot = pg.SpatialError().project(traces, middle).iloc[0]
        assert (foot.x, foot.y) == (pytest.approx(4.801), pytest.approx(45.7, abs=1e-5))
        middle = middle.set_geometry(gpd.points_from_xy([4.8], [45.74], crs=4326))
        assert pg.SpatialError().project(traces, middle).iloc[0].y == pytest.approx(45.75)

    def test_many_lines_through_one_place_are_searched(self):
        steps, rng = np.arange(MANY), np.random.default_rng(3)
        ends = np.column_stack((np.where(steps % 2, 0, 3_000.0), rng.normal(0, 0.1, MANY)))
        segments = np.where(rng.random(MANY) < 0.2, steps, -(steps // 50))
        parts = {"times": steps * 10**9, "users": ["a"], "counts": np.array([MANY]), "crs": 32631}
        traces = pg.Traces.from_arrays(*ends.T, segments=segments, **parts)
        points = np.column_stack((rng.uniform(-100, 3_100, MANY), rng.normal(0, 1, MANY)))
        found = pg.SpatialError().detail(traces, replace(traces, points=points)).to_numpy()
        joined = np.flatnonzero(segments[1:] == segments[:-1])
        for row in range(0, MANY, MANY // 50):
            a, along = ends[joined], ends[joined + 1] - ends[joined]
            parts_along = np.clip(((points[row] - a) * along).sum(axis=1) / (along**2).sum(axis=1), 0, 1)
            nearest = np.linalg.norm(points[row] - a - parts_along[:, None] * along, axis=1).min()
            nearest = min(nearest, np.linalg.norm(points[row] - ends, axis=1).min())
            assert found[row] == pytest.approx(nearest, abs=1e-7)


def gpx_of(*tracks) -> str:
    """GPX of tracks, lists of segments, lists of (minutes, longitude, latitude)."""
    body = ""
    for track in tracks:
        segments = ""
        for segment in track:
            points = "".join(
                f'<trkpt lat="{lat}" lon="{lon}"><time>2024-03-04T{8 + minutes // 60:02d}:{minutes % 60:02d}:00Z</time>'
                "</trkpt>"
                for minutes, lon, lat in segment
            )
            segments += f"<trkseg>{points}</trkseg>"
        body += f"<trk>{segments}</trk>"
    return f'<gpx version="1.1">{body}</gpx>'


class TestGpx:
    def test_segments_far_apart_are_not_joined(self, tmp_path):
        walks = [[(begin + i, 4.8 + i / 1000, lat) for i in range(10)] for begin, lat in ((0, 45.7), (30, 45.8))]
        (tmp_path / "two.gpx").write_text(gpx_of(walks))
        frame = pg.read_gpx(tmp_path / "two.gpx")
        assert frame["segment"].tolist() == [0] * 10 + [1] * 10
        safe = frame.promesse.prepare(tz="UTC").promesse.smooth(100)
        assert len(safe) == 10  # of each walk of 700 m, five points
        assert ((safe.geometry.y > 45.7005) & (safe.geometry.y < 45.7995)).sum() == 0

    def test_tracks_and_segments_and_files_are_breaks(self, tmp_path):
        point = (4.8, 45.7)
        first = gpx_of([[(0, *point), (1, *point)], [], [(2, *point)]], [], [[(3, *point)]])
        (tmp_path / "a.gpx").write_text(first)
        (tmp_path / "b.gpx").write_text(gpx_of([[(4, *point), (5, *point)]]))
        traces = pg.read_gpx(tmp_path, user="folder", as_traces=True)
        assert traces.breaks.tolist() == [2, 3, 4]
        assert pg.read_gpx(tmp_path, user="track", as_traces=True).breaks.tolist() == [2]
        assert pg.read_gpx(tmp_path, as_traces=True).breaks.tolist() == [2, 3]

    def test_a_dropped_point_hands_its_break_on(self, tmp_path):
        point = (4.8, 45.7)
        (tmp_path / "a.gpx").write_text(gpx_of([[(0, *point), (1, *point)], [(2, 4.8, 100), (3, *point), (4, *point)]]))
        with pytest.warns(UserWarning, match="dropped 1 record"):
            assert pg.read_gpx(tmp_path / "a.gpx", as_traces=True).breaks.tolist() == [2]


def line_lengths(axes) -> list[float]:
    """Kilometres of the pieces that the lines of axes draw between finite points."""
    lines = [line.get_xydata() for line in axes.lines if line.get_linestyle() == "-"]
    return [length for line in lines for length in np.linalg.norm(np.diff(line, axis=0), axis=1) if np.isfinite(length)]


class TestFigures:
    def test_no_line_crosses_a_break(self):
        traces = from_frame(make_tracks([10, 10, 2]), segment="trip")
        panels = overview(traces, epsilon=100).axes
        assert [len(line_lengths(axes)) for axes in panels] == [19, 12, 8]
        assert max(map(max, map(line_lengths, panels))) < 0.11
        assert [len(line.get_xydata()) for line in panels[2].lines] == [11, 10, 2, 2]
        with pytest.warns(UserWarning, match="2 breaks"):
            safe = pg.Promesse(100).protect(traces)
        axes = space_time(traces, safe)
        assert [int(np.isnan(line.get_xydata()).any(axis=1).sum()) for line in axes.lines] == [2, 1]
        assert max(line_lengths(axes)) < 0.2
        assert speeds(traces, safe).get_xlim()[1] < 10 * 3.6

    def test_maps_draw_no_line_across_a_break(self):
        traces = from_frame(make_tracks([10, 10, 2], users=["b", "a", "a"]), segment="trip")
        layer = record_layer(traces, Projection.of(traces, None, {"a": 0, "b": 1}, most=100), most=100, kind="original")
        assert layer.data["breaks"] == [10]
        assert layer.data["counts"] == [12, 10]


class TestTables:
    @pytest.mark.parametrize("ending", [".parquet", ".gpkg", ".csv", ".geojson"])
    @pytest.mark.parametrize("name", ["trip", None])
    def test_written_breaks_are_read_again(self, tmp_path, ending, name):
        traces = from_frame(make_tracks([3, 4, 2], users=["b", "a", "a"]), segment="trip")
        traces = replace(traces, names=replace(traces.names, segment=name))
        file = tmp_path / f"traces{ending}"
        pg.write(traces, file)
        has_metadata = ending in (".parquet", ".gpkg")
        options = {} if has_metadata else {"segment": "segment"}
        kept = (name if has_metadata else None) or "segment"
        for read in (pg.read_file(file, **options, as_traces=True), pg.read_table(file, as_traces=True, **options)):
            assert read.breaks.tolist() == [4]
            assert read.names.segment == kept
        assert len(pg.read_table(file, as_traces=True, segment=None).breaks) == 0
        frame = pg.read_table(file, **options)
        assert frame[kept].tolist() == [0] * 4 + [1] * 2 + [0] * 3

    @pytest.mark.parametrize("ending", [".parquet", ".gpkg", ".csv", ".geojson"])
    def test_files_without_breaks_have_no_segment(self, tmp_path, ending):
        file = tmp_path / f"traces{ending}"
        pg.write(pg.split_gaps(make_tracks([3, 4]), keep_user=True, segment="trip"), file)
        frame = pg.read_table(file)
        assert list(frame.columns) == ["user", "time", "geometry"]
        with pytest.raises(KeyError, match="segment column 'segment' does not exist"):
            pg.read_table(file, segment="segment")

    @pytest.mark.filterwarnings("ignore:The column .segment. is not used")
    @pytest.mark.parametrize("ending", [".parquet", ".geojson", ".gpkg"])
    def test_a_foreign_column_is_read_only_if_specified(self, tmp_path, ending):
        file = tmp_path / f"trips{ending}"
        frame = make_tracks([3, 4]).astype({"trip": str}).rename(columns={"trip": "segment"})
        frame.to_parquet(file) if ending == ".parquet" else frame.to_file(file)
        assert len(pg.read_table(file, as_traces=True).breaks) == 0
        assert pg.read_table(file, as_traces=True, segment="segment").breaks.tolist() == [3]

    def test_segments_of_a_csv_are_text(self, tmp_path):
        file = tmp_path / "trips.csv"
        legs = ["007", "7", "7", "", ""]
        rows = [f"a,2024-03-04T08:0{minute}:00Z,4.8,45.7,{leg}" for minute, leg in enumerate(legs)]
        file.write_text("\n".join(["user,time,lon,lat,leg", *rows, ""]))
        assert pg.read_table(file, as_traces=True, segment="leg").breaks.tolist() == [1, 3]

    def test_each_file_begins_a_segment_if_a_file_has_segments(self, tmp_path):
        traces = from_frame(make_tracks([3, 4]), segment="trip")
        pg.write(traces, tmp_path / "1.parquet")
        first = traces.select(traces.segment_numbers == 0)
        pg.write(replace(first, times=first.times + 10**13), tmp_path / "2.parquet")
        assert pg.read_table(tmp_path, as_traces=True).breaks.tolist() == [3, 7]

    def test_the_command_line_takes_a_segment(self, tmp_path):
        file, out = tmp_path / "trips.csv", tmp_path / "safe.parquet"
        pg.write(from_frame(make_tracks([10, 12]), segment="trip"), file)
        command = ["smooth", str(file), str(out), "--epsilon", "100", "--segment", "segment"]
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 0
        assert "2 segments" in result.stderr
        safe = pg.read_table(out)
        assert safe["user"].value_counts().tolist() == [7, 5]
        assert list(safe.columns) == ["user", "time", "geometry"]

    def test_a_file_that_keeps_users_may_have_segments(self, tmp_path):
        before, after = tmp_path / "before.parquet", tmp_path / "after.parquet"
        pg.write(from_frame(make_tracks([10, 12]), segment="trip"), before)
        command = ["smooth", str(before), str(after), "--epsilon", "100", "--keep-users"]
        assert CliRunner().invoke(main, command).exit_code == 0
        assert pg.read_file(after, as_traces=True).breaks.tolist() == [5]
        table = CliRunner().invoke(main, ["check", str(before), str(after), "--epsilon", "100"])
        assert "other columns" not in "".join(line for line in table.output.splitlines() if "failed" in line)


@pytest.mark.parametrize("ending", ["csv", "geojson"])
def test_a_column_of_segments_that_no_metadata_names_is_not_passed_over_in_silence(tmp_path, ending):
    frame = pg.make_city(users=1, days=1, recorder="phone").iloc[:100]
    traces = frame.assign(segment=np.arange(100) // 50).promesse(segment="segment").traces()
    pg.write(traces, tmp_path / f"raw.{ending}")
    with pytest.warns(UserWarning, match="--segment segment"):
        assert len(pg.read_file(tmp_path / f"raw.{ending}", as_traces=True).breaks) == 0
    assert len(pg.read_file(tmp_path / f"raw.{ending}", segment="segment", as_traces=True).breaks) == 1


@pytest.mark.parametrize("name", [pd.NA, np.array([1, 2]), [1], {"a": 1}, object()])
def test_roles_that_name_no_column_are_ignored(name):
    frame = pg.make_city(users=1, days=1, recorder="phone").iloc[:100].copy()
    frame.attrs["promesse"] = {"user": name, "time": name, "segment": name}
    assert len(pg.Traces.from_frame(frame)) == 1


def test_info_counts_nights_between_tracks_among_the_breaks():
    times = pd.to_datetime(["2024-03-04T18:00", "2024-03-04T18:01", "2024-03-05T08:00", "2024-03-05T08:30"])
    points = gpd.points_from_xy([4.84, 4.85, 4.86, 4.87], [45.76] * 4)
    frame = gpd.GeoDataFrame({"user": "a", "time": times, "track": [0, 0, 1, 2]}, geometry=points, crs=4326)
    traces = from_frame(frame, segment="track")
    described = pg.describe(traces)
    assert described[["breaks", "long_breaks", "gaps"]].tolist() == [2, 1, 0]
    said = " ".join(description(traces).split())
    assert (
        " breaks 2 breaks (of the recorder, 1 of them of 4 h or more; prepare splits there, so that each trace" in said
    )


@pytest.fixture(scope="module")
def zoned():
    """Traces with a zone on the way, which a break of them passes, and the place of the zone."""
    city = pg.make_city(users=2, days=1, recorder="phone")
    spot = gpd.GeoDataFrame(geometry=[city.geometry.iloc[300]], crs=4326)
    with pytest.warns(UserWarning, match="removed"):
        return city.promesse.zones(400, 0, zones=spot), spot


def nearest(frame, spot):
    return frame.to_crs(2154).distance(spot.to_crs(2154).geometry[0]).min()


@pytest.mark.filterwarnings("ignore:.*not prepared", "ignore:.*was protected as", "ignore:.*was dropped")
@pytest.mark.parametrize(
    ("change", "segment"),
    [
        (lambda frame: frame.drop(columns="segment"), None),
        (lambda frame: frame[["user", "time", "geometry"]], None),
        (lambda frame: frame.rename(columns={"segment": "piece"}), "piece"),
    ],
)
def test_a_column_of_segments_that_is_lost_is_not_passed_over_in_silence(zoned, change, segment):
    frame, spot = zoned
    assert nearest(frame.promesse.smooth(50), spot) > 399
    lost = change(frame)
    with pytest.warns(UserWarning, match=r"'segment' does not exist.*segment=None"):
        assert nearest(lost.promesse.smooth(50), spot) < 399
    if segment is not None:
        assert nearest(lost.promesse(segment=segment).smooth(50), spot) > 399


@pytest.mark.filterwarnings("ignore:.*not prepared", "ignore:.*was protected as")
def test_segments_that_are_dropped_on_purpose_are_no_reason_to_warn(zoned):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*does not exist")
        zoned[0].drop(columns="segment").promesse(segment=None).smooth(50)


@pytest.mark.parametrize("read", ["file", "arrow"])
def test_a_column_of_segments_that_metadata_name_and_a_file_lacks_is_not_passed_over_in_silence(zoned, read, tmp_path):
    path = tmp_path / "zoned.parquet"
    pg.write(zoned[0], path)
    table = pq.read_table(path).drop_columns(["segment"])
    pq.write_table(table, path)
    with pytest.warns(UserWarning, match=r"'segment' does not exist.*--segment"):
        pg.read_file(path) if read == "file" else pg.protect_arrow(table, pg.GeoIndistinguishability(0.01, seed=1))


def test_a_column_of_trips_that_is_no_column_of_segments_because_of_a_named_user_is_not_passed_over_in_silence():
    frame = pg.make_city(users=2, days=1, recorder="phone").assign(trip_id=1)
    with pytest.warns(UserWarning, match=r"'trip_id' was dropped.*segment='trip_id'"):
        pg.Traces.from_frame(frame, user="user")
