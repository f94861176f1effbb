"""GPX that is written: its text, what reads it, and that what is written reads back equal."""

import numpy as np
import pandas as pd
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

import promesse_geo as pg
from promesse_geo.io.writers import gpx as gpx_writer
from promesse_geo.io.writers.gpx import is_written

START = '<?xml version="1.0" encoding="UTF-8"?>\n<gpx version="1.1" creator="promesse_geo" xmlns='
START += '"http://www.topografix.com/GPX/1/1">\n'


def traces_of(users, counts, *, x=None, y=None, times=None, **options) -> pg.Traces:
    count = sum(counts)
    x = np.arange(count) * 0.25 if x is None else np.array(x, float)
    y = np.arange(count) * 0.5 if y is None else np.array(y, float)
    times = np.arange(count) * 10**9 + 1_709_539_200 * 10**9 if times is None else np.array(times)
    return pg.Traces.from_arrays(x, y, times=times, users=users, counts=np.array(counts), **options)


def test_the_text_is_what_the_documentation_says(tmp_path):
    traces = traces_of(["a<&>", "b\n"], [3, 1], segments=np.array([0, 0, 1, 0]))
    pg.write(traces, tmp_path / "a.gpx")
    text = (tmp_path / "a.gpx").read_text(encoding="utf-8").replace(".000000000Z", "Z")
    assert text == START + (
        "<trk><name>a&lt;&amp;&gt;</name>\n<trkseg>\n"
        '<trkpt lat="0" lon="0"><time>2024-03-04T08:00:00Z</time></trkpt>\n'
        '<trkpt lat="0.5" lon="0.25"><time>2024-03-04T08:00:01Z</time></trkpt>\n'
        "</trkseg>\n<trkseg>\n"
        '<trkpt lat="1" lon="0.5"><time>2024-03-04T08:00:02Z</time></trkpt>\n'
        "</trkseg>\n</trk>\n"
        "<trk><name>b&#10;</name>\n<trkseg>\n"
        '<trkpt lat="1.5" lon="0.75"><time>2024-03-04T08:00:03Z</time></trkpt>\n'
        "</trkseg>\n</trk>\n</gpx>\n"
    )
    assert is_written(tmp_path / "a.gpx")


def test_numbers_have_no_exponent_and_longitudes_are_below_180(tmp_path):
    pg.write(traces_of(["a"], [3], x=[1e-7, 180, -180], y=[-2.5e-10, 1, 1]), tmp_path / "a.gpx")
    text = (tmp_path / "a.gpx").read_text(encoding="utf-8")
    assert 'lat="-0.00000000025' in text
    assert 'lon="0.0000001' in text
    assert text.count('lon="-180"') == 2
    assert "e-" not in text.removeprefix(START)


def test_a_single_trace_has_no_name_and_is_read_by_its_file(tmp_path):
    frame = traces_of(["hush"], [2]).to_frame().drop(columns="user")
    pg.write(frame, tmp_path / "walk.gpx", user=None)
    assert "name" not in (tmp_path / "walk.gpx").read_text(encoding="utf-8")
    assert set(pg.read_gpx(tmp_path / "walk.gpx")["user"]) == {"walk"}


@pytest.mark.parametrize("user", ["file", "folder", "track"])
def test_a_user_that_is_specified_goes_before_the_names_of_tracks(user, tmp_path):
    (tmp_path / "home").mkdir()
    pg.write(traces_of(["a", "b"], [1, 2]), tmp_path / "home" / "x.gpx")
    expected = {"file": ["x"], "folder": ["home"], "track": ["x-1", "x-2"]}[user]
    assert pg.read_gpx(tmp_path / "home", user=user, as_traces=True).users.tolist() == expected


def test_files_of_ours_and_of_others_are_read_together(tmp_path):
    pg.write(traces_of(["a", "b"], [1, 2]), tmp_path / "x.gpx")
    other = (tmp_path / "x.gpx").read_text(encoding="utf-8").replace("promesse_geo", "somebody")
    (tmp_path / "y.gpx").write_text(other, encoding="utf-8")
    assert pg.read_gpx(tmp_path, as_traces=True).users.tolist() == ["a", "b", "y"]
    assert pg.read_gpx(tmp_path, users=["b", "y"], as_traces=True).users.tolist() == ["b", "y"]
    with pytest.raises(ValueError, match="1 of 1 user not found"):
        pg.read_gpx(tmp_path, users=["x"])


def test_times_without_a_zone_are_written_and_read_so_with_a_warning(tmp_path):
    traces = traces_of(["a"], [2], zone=None)
    with pytest.warns(UserWarning, match="no zone"):
        pg.write(traces, tmp_path / "a.gpx")
    found = pg.read_gpx(tmp_path / "a.gpx", as_traces=True)
    assert found.time_format.zone is None
    assert found.times.tolist() == traces.times.tolist()
    pg.write(traces_of(["b"], [2]), tmp_path / "b.gpx")
    with pytest.raises(ValueError, match="times with a zone, others without"):
        pg.read_gpx(tmp_path)


def test_no_record_is_written_and_read(tmp_path):
    pg.write(traces_of([], []), tmp_path / "a.gpx")
    found = pg.read_gpx(tmp_path / "a.gpx")
    assert list(found.columns) == ["user", "time", "geometry"]
    assert len(found) == 0
    assert pg.read_file(tmp_path / "a.gpx", format="gpx", as_traces=True) is not None


@pytest.mark.parametrize("user", ["a\0", "\x1b", "\ufffe"])
def test_user_keys_that_xml_cannot_keep_are_refused(user, tmp_path):
    with pytest.raises(ValueError, match="1 user key holds a control character"):
        pg.write(traces_of([user, "b"], [1, 1]), tmp_path / "a.gpx")
    assert list(tmp_path.iterdir()) == []


def test_points_of_interest_are_no_tracks(tmp_path):
    with pytest.raises(ValueError, match="must end with one of"):
        pg.io.writers.write_pois(
            pg.pois(pg.make_city(users=1, days=1, recorder="phone")), tmp_path / "a.gpx", force=False
        )


KEYS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=5)


@pytest.mark.filterwarnings("ignore:The times have no zone")
@examples(60)
@given(st.data(), st.booleans(), st.sampled_from([1, 3, 1 << 16]))
def test_what_is_written_reads_back_equal(tmp_path_factory, data, zoned, rows):
    users = data.draw(st.lists(KEYS, min_size=1, max_size=4, unique=True))
    counts = data.draw(st.lists(st.integers(1, 4), min_size=len(users), max_size=len(users)))
    count = sum(counts)
    several = {"min_size": count, "max_size": count}
    times = data.draw(st.lists(st.integers(-(10**18), 4 * 10**18), **several))
    x = data.draw(st.lists(st.floats(-180, 180, exclude_max=True), **several))
    y = data.draw(st.lists(st.floats(-90, 90), **several))
    codes = np.cumsum(data.draw(st.lists(st.booleans(), **several)))
    traces = traces_of(users, counts, x=x, y=y, times=times, segments=codes, zone="UTC" if zoned else None)
    path = tmp_path_factory.mktemp("gpx") / "a.gpx"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpx_writer, "_ROWS", rows)
        pg.write(traces, path)
    found = pg.read_gpx(path, as_traces=True)
    assert found.users.tolist() == traces.users.tolist()
    assert found.counts.tolist() == traces.counts.tolist()
    assert found.times.tolist() == traces.times.tolist()
    assert np.array_equal(found.segment_numbers, traces.segment_numbers)
    x, y = traces.coordinates()
    x[x == 180] = -180  # GPX has no longitude 180
    assert np.array_equal(found.points, traces.space.points(x, y))  # every digit is kept
    assert is_written(path)


OTHERS = {
    "elevation": ("<time>", "<ele>170</ele><time>"),
    "a comment": ("<trkseg>", "<trkseg><!-- home -->"),
    "another creator": ("promesse_geo", "somebody"),
    "metadata": ("<trk>", "<metadata><author/></metadata><trk>"),
    "a description": ("</name>", "</name><desc>home</desc>"),
    "blanks": ("</trkseg>", "</trkseg> "),
    "an attribute": ("<trkpt ", '<trkpt id="7" '),
    "another zone": ("Z</time>", "+00:00</time>"),
    "extensions": ("</trkpt>", "<extensions/></trkpt>"),
    "something after the end": ("</gpx>\n", "</gpx>\n<!-- home -->"),
    "no line at the end": ("</gpx>\n", "</gpx>"),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_files_are_not_taken_for_ours(kind, tmp_path):
    pg.write(traces_of(["a", "b"], [2, 2]), tmp_path / "a.gpx")
    text = (tmp_path / "a.gpx").read_text(encoding="utf-8")
    assert OTHERS[kind][0] in text
    (tmp_path / "a.gpx").write_text(text.replace(*OTHERS[kind]), encoding="utf-8")
    assert not is_written(tmp_path / "a.gpx")


def test_data_of_another_crs_are_transformed(tmp_path):
    frame = pg.make_city(users=2, days=1, recorder="phone")
    pg.write(frame.to_crs(32631), tmp_path / "a.gpx")
    found = pg.read_gpx(tmp_path / "a.gpx")
    assert np.allclose(found.geometry.x, frame.geometry.x, atol=1e-9)
    assert np.allclose(found.geometry.y, frame.geometry.y, atol=1e-9)
    assert pd.DatetimeIndex(found["time"]).equals(pd.DatetimeIndex(frame["time"]).tz_convert("UTC").as_unit("ns"))
