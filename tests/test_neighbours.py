"""Data of other libraries are read, and theirs are made of what is returned."""

import io
import json
import re
from types import SimpleNamespace

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from doc_tables import format_table
from hypothesis import given
from hypothesis import strategies as st
from test_cli import done

import promesse_geo as pg
from promesse_geo.io.registry import FORMATS
from promesse_geo.io.writers import WRITERS

START = pd.Timestamp("2024-03-04 08:00")


def make_frame(*, minutes=(0, 1, 2, 60, 61, 62), trips=(0, 0, 0, 1, 1, 1), users=("ana",) * 6) -> gpd.GeoDataFrame:
    """Records that go east, 78 m each."""
    count = len(minutes)
    table = {"user": list(users), "trip": list(trips), "time": [START + pd.Timedelta(minutes=m) for m in minutes]}
    points = gpd.points_from_xy(4.8 + 0.001 * np.arange(count), np.full(count, 45.7))
    return gpd.GeoDataFrame(table, geometry=points, crs=4326)


class Trajectory:
    """The attributes of a Trajectory of MovingPandas that are read."""

    def __init__(self, frame, *, id, obj_id=None):
        self.df, self.id, self.obj_id = frame.set_index("time").drop(columns="user"), id, obj_id
        self.traj_id_col_name = "trip"


def as_collection(frame, *, by_object):
    groups = frame.groupby(["user", "trip"])
    return SimpleNamespace(
        trajectories=[
            Trajectory(part, id=f"{user}-{trip}", obj_id=user if by_object else None) for (user, trip), part in groups
        ]
    )


def test_trajectories_of_one_object_are_its_segments():
    frame = make_frame()
    traces = pg.Traces.from_frame(as_collection(frame, by_object=True))
    same = pg.Traces.from_frame(frame, segment="trip")
    assert traces.users.tolist() == ["ana"]
    assert traces.breaks.tolist() == same.breaks.tolist() == [3]
    assert (traces.points == same.points).all()
    assert (traces.times == same.times).all()
    assert list(traces.to_frame().columns) == ["user", "time", "segment", "geometry"]


def test_trajectories_without_an_object_are_users():
    traces = pg.Traces.from_frame(as_collection(make_frame(), by_object=False))
    assert traces.users.tolist() == ["ana-0", "ana-1"]
    assert traces.breaks.tolist() == []


def test_every_function_takes_trajectories():
    collection = as_collection(make_frame(), by_object=True)
    assert len(pg.prepare(collection, seed=1)) == 6
    assert pg.prepare(collection, seed=1)["user"].nunique() == 2
    assert len(pg.describe(collection)) == len(pg.describe(make_frame()))
    assert pg.Compression().measure(collection, collection) == 100
    assert pg.Traces.from_frame(collection.trajectories[0]).records == 3


@pytest.mark.filterwarnings("ignore:[\\s\\S]*:UserWarning")
@pytest.mark.filterwarnings("ignore:[\\s\\S]*:DeprecationWarning")  # of its calls of pandas
def test_movingpandas_takes_and_gives():
    mpd = pytest.importorskip("movingpandas")
    frame = make_frame()
    collection = mpd.TrajectoryCollection(frame, traj_id_col="trip", obj_id_col="user", t="time")
    traces = pg.Traces.from_frame(collection)
    assert traces.breaks.tolist() == [3]
    assert (traces.times == pg.Traces.from_frame(frame, segment="trip").times).all()
    back = mpd.TrajectoryCollection(traces.to_frame(), traj_id_col="segment", obj_id_col="user", t="time")
    same = pg.Traces.from_frame(back)
    assert np.allclose(same.coordinates(), traces.coordinates(), rtol=0, atol=1e-9)  # degrees, which it rounds
    assert same.breaks.tolist() == [3]
    parts = pg.prepare(collection)
    assert len(mpd.TrajectoryCollection(parts, traj_id_col="user", t="time").trajectories) == 2


@pytest.mark.filterwarnings("ignore:[\\s\\S]*:UserWarning")
def test_trackintel_takes_and_gives():
    ti = pytest.importorskip("trackintel")
    names = {"user": "user_id", "time": "tracked_at"}
    frame = make_frame().drop(columns="trip").rename(columns=names).rename_geometry("geom")
    fixes = ti.Positionfixes(frame.assign(tracked_at=frame["tracked_at"].dt.tz_localize("UTC")))
    assert (pg.Traces.from_frame(fixes).points == pg.Traces.from_frame(make_frame().drop(columns="trip")).points).all()
    prepared = pg.prepare(fixes, keep_zone=True)
    assert list(ti.Positionfixes(prepared).columns) == ["user_id", "tracked_at", "geom"]


def test_a_zone_is_kept_without_other_times():
    city = pg.make_city(users=2, days=2, recorder="phone")
    naive, zoned = (pg.prepare(city, tz="Europe/Paris", seed=1, keep_zone=keep) for keep in (False, True))
    assert naive["time"].dt.tz is None
    assert str(zoned["time"].dt.tz) == "UTC"
    assert (zoned["time"].dt.tz_localize(None) == naive["time"]).all()
    by_method = city.promesse.prepare(tz="Europe/Paris", seed=1, keep_zone=True)
    pd.testing.assert_frame_equal(by_method, zoned)
    assert (pg.Promesse(200).protect(zoned).geometry == pg.Promesse(200).protect(naive).geometry).all()
    with pytest.raises(TypeError, match="'keep_zone' parameter of prepare"):
        pg.prepare(city, keep_zone=1)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_command_line_keeps_a_zone(tmp_path, ending):
    pg.write(pg.make_city(users=2, days=2, recorder="phone"), tmp_path / "raw.parquet")
    prepare = ["prepare", tmp_path / "raw.parquet", "--tz", "Europe/Paris", "--keep-users"]
    naive, zoned = (tmp_path / f"{name}.{ending}" for name in ("naive", "zoned"))
    done(*prepare, naive)
    done(*prepare, zoned, "--keep-zone")
    before, after = (pg.read_file(path, as_traces=True) for path in (naive, zoned))
    assert (before.time_format.zone, str(after.time_format.zone)) == (None, "UTC")
    assert (after.times == before.times).all()
    assert (after.points == before.points).all()
    done("smooth", zoned, tmp_path / "safe.parquet", "--epsilon", 200)


@pytest.mark.parametrize(
    ("lon", "lat"), [("lng", "lat"), ("lon", "lat"), ("Longitude", "Latitude"), ("location-long", "location-lat")]
)
def test_a_table_with_known_coordinates_is_read_in_degrees(lon, lat):
    frame = make_frame().drop(columns="trip")
    table = pd.DataFrame(
        {"uid": frame["user"], "datetime": frame["time"], lat: frame.geometry.y, lon: frame.geometry.x}
    )
    traces, same = pg.Traces.from_frame(table), pg.Traces.from_frame(frame)
    assert (traces.points == same.points).all()
    assert list(traces.to_frame().columns) == ["uid", "datetime", "geometry"]
    assert traces.space.crs == same.space.crs
    assert (table.promesse.smooth(100).geometry == pg.Promesse(100).protect(frame).geometry).all()
    detail = pg.SpatialError().detail(frame.rename(columns={"user": "uid", "time": "datetime"}), table)
    assert detail.index.equals(table.index)


@given(st.lists(st.tuples(st.floats(-180, 180), st.floats(-90, 90)), min_size=1, max_size=20))
def test_a_table_gives_the_points_of_geopandas(places):
    x, y = map(list, zip(*places, strict=True))
    table = pd.DataFrame({"user": "a", "time": START, "lon": x, "lat": y}, index=range(5, 5 + len(x)))
    frame = gpd.GeoDataFrame(table[["user", "time"]], geometry=gpd.points_from_xy(x, y), crs=4326)
    assert (pg.Traces.from_frame(table).points == pg.Traces.from_frame(frame).points).all()


def test_a_change_of_the_table_is_seen():
    table = pd.DataFrame({"user": "a", "time": START, "lon": [1.0, 2.0], "lat": 3.0})
    before = table.promesse.traces().coordinates()[0].tolist()
    table["lon"] += 1
    assert np.allclose(table.promesse.traces().coordinates()[0], np.add(before, 1))


def test_a_missing_coordinate_is_an_invalid_record():
    table = pd.DataFrame({"user": "a", "time": START, "lon": [1.0, None], "lat": 3.0})
    with pytest.raises(ValueError, match=r"1 record of 2 .*first in row 1"):
        pg.Traces.from_frame(table)
    with pytest.warns(UserWarning, match="1 record of 2 dropped"):
        assert pg.Traces.from_frame(table, errors="skip").records == 1


REFUSED = {
    "x and y": (pd.DataFrame({"x": [1.0], "y": [2.0]}), r"CRS of 'x' and 'y' is unknown.*points_from_xy\(df\.x, df\.y"),
    "no coordinates": (pd.DataFrame({"a": [1.0]}), "columns named as lon and lat; the columns are 'a'"),
    "text": (pd.DataFrame({"lon": ["1"], "lat": [2.0]}), r"'lon' must hold degrees.*pd\.to_numeric\(df\['lon'\]\)"),
    "a geometry": (pd.DataFrame(make_frame()), r"GeoDataFrame\(df, geometry='geometry'"),
    "nothing": (SimpleNamespace(trajectories=[]), "holds no trajectories"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_read_has_a_remedy(kind):
    data, words = REFUSED[kind]
    with pytest.raises(TypeError, match=words):
        pg.Traces.from_frame(data)


@pytest.mark.parametrize("renamed", [{}, {"user": "Teilnehmer", "lon": "Längengrad", "lat": "Breitengrad"}])
def test_tables_are_checked_as_frames_are(renamed):
    parts = pg.prepare(pg.make_city(users=3, days=2, seed=1, recorder="phone"), keep_user=True, seed=1)
    safe = pg.Promesse(200).protect(parts).assign(phone="x")
    frames = [frame.rename(columns=renamed) for frame in (parts, safe)]
    tables = [
        pd.DataFrame(frame.drop(columns="geometry")).assign(lon=frame.geometry.x, lat=frame.geometry.y)
        for frame in (parts, safe)
    ]
    tables = [table.rename(columns=renamed) for table in tables]
    for each in (*frames, *tables):
        each.attrs = {}
    expected = pg.check_published(*frames, epsilon=200)
    pd.testing.assert_frame_equal(pg.check_published(*tables, epsilon=200), expected)
    pd.testing.assert_frame_equal(tables[0].promesse.check(tables[1], epsilon=200), expected)
    assert expected.set_index("test")["verdict"]["no other columns"] == "failed"


def test_two_columns_of_longitude_are_ambiguous():
    with pytest.raises(ValueError, match="Several columns could hold the lon"):
        pg.Traces.from_frame(pd.DataFrame({"lng": [1.0], "longitude": [1.0], "lat": [2.0]}))


@pytest.mark.parametrize(
    ("module", "kind"),
    [("dask_geopandas.core", "GeoDataFrame"), ("dask_expr._collection", "DataFrame"), ("dask.dataframe", "DataFrame")],
)
def test_frames_that_are_not_computed_are_refused_by_name(module, kind):
    lazy = type(kind, (), {"__module__": module, "compute": lambda self: make_frame()})()
    name = rf"Got a {module.partition('.')[0]}\.{kind} instead\. Pass what its method \.compute\(\) returns"
    for call in (pg.Promesse(100).protect, pg.describe, pg.Traces.from_frame):
        with pytest.raises(TypeError, match=name):
            call(lazy)


def test_dask_frames_are_refused_by_name():
    dask_geopandas = pytest.importorskip("dask_geopandas")
    frame = dask_geopandas.from_geopandas(make_frame(), npartitions=1)
    with pytest.raises(TypeError, match=r"Got a dask_geopandas\.GeoDataFrame instead\..*\.compute\(\)"):
        pg.Promesse(100).protect(frame)
    with pytest.raises(TypeError, match=r"Got a dask\.DataFrame instead\..*\.compute\(\)"):
        pg.describe(frame.to_dask_dataframe())
    for data in (frame, frame.to_dask_dataframe()):
        for read in READERS:
            with pytest.raises(TypeError, match=r"Got a dask\w*\.\w*DataFrame instead\..*\.compute\(\)"):
                read(data)


READERS = (pg.read_file, pg.read_table, pg.read_gpx, pg.read_cabspotting, pg.read_geolife, pg.read_mdc)


def refused(data, words):
    """Readers of files name what they got, and what takes it."""
    for read in READERS:
        if read is not pg.read_table or "read_table" not in words:
            for source in (data, [data]) if read not in (pg.read_file, pg.read_geolife) else (data,):
                with pytest.raises(TypeError, match=rf"{read.__name__} reads files. Got a {words}"):
                    read(source)


def lazy(module, kind, method):
    """Data of another package that a method converts; its columns are what it iterates over."""
    members = {"__module__": module, method: lambda self: make_frame(), "__iter__": lambda self: iter(["user", "time"])}
    return type(kind, (), members)()


@pytest.mark.parametrize(
    ("module", "kind", "method", "remedy"),
    [
        ("dask_geopandas.core", "GeoDataFrame", "compute", r"Functions take what its method \.compute\(\) returns"),
        ("dask.dataframe.dask_expr", "DataFrame", "compute", r"Functions take what its method \.compute\(\) returns"),
        ("pyspark.sql", "DataFrame", "toPandas", r"Functions take what its method \.toPandas\(\) returns"),
        ("xarray.core", "Dataset", "to_dataframe", r"Functions take what its method \.to_dataframe\(\) returns"),
        ("polars.lazyframe", "LazyFrame", "collect", r"Read it with pg\.read_table\(data\.collect\(\)\)"),
        ("pyarrow._dataset", "Dataset", "to_table", r"Read it with pg\.read_table\(data\.to_table\(\)\)"),
    ],
)
def test_readers_refuse_lazy_data_by_name(module, kind, method, remedy):
    words = rf"{module.partition('.')[0]}\.{kind} instead\. {remedy}"
    for read in READERS:
        with pytest.raises(TypeError, match=words):
            read(lazy(module, kind, method))
    with pytest.raises(TypeError, match=remedy.partition("with ")[2] or remedy.partition("what ")[2]):
        pg.describe(lazy(module, kind, method))


def test_readers_refuse_data_in_memory_by_name():
    takes = r"\.\w+ instead\. Functions take it as it is, as in pg\.describe\(data\)"
    refused(make_frame(), f"geopandas{takes}")
    refused(pd.DataFrame({"user": []}), f"pandas{takes}")
    refused(pg.Traces.from_frame(make_frame(), segment="trip"), f"promesse_geo{takes}")
    refused(as_collection(make_frame(), by_object=True), f"types{takes}")
    refused(arrow_table(), r"pyarrow\.Table instead\. Read it with pg\.read_table\(data\)")
    assert len(pg.read_table(arrow_table())) == 6


def test_what_is_no_data_must_be_a_path():
    for source in (7, None, b"a.csv", io.BytesIO(), pd.Timestamp(0)):
        for read in READERS:
            with pytest.raises(TypeError, match="must be a path"):
                read(source)


def test_a_path_is_no_frame():
    with pytest.raises(TypeError, match=r"Got a str instead\. Read a file with pg\.read_file"):
        pg.describe("tracks.csv")


def arrow_table():
    frame = make_frame()
    x, y = frame.geometry.x, frame.geometry.y
    return pa.table({"user": frame["user"], "time": frame["time"].dt.tz_localize("UTC"), "lon": x, "lat": y})


def check_arrow(table):
    traces = pg.read_table(table, as_traces=True)
    assert (traces.points == pg.Traces.from_frame(make_frame().drop(columns="trip")).points).all()
    assert (traces.users.tolist(), traces.records) == (["ana"], 6)
    assert (traces.times == pg.Traces.from_frame(make_frame().drop(columns="trip")).times).all()


def test_arrow_tables_are_read():
    check_arrow(arrow_table())
    check_arrow(arrow_table().to_reader(max_chunksize=2))


@pytest.mark.parametrize("encoding", ["wkb", "point", "interleaved", "bare wkb"])
@pytest.mark.parametrize("zoned_crs", ["EPSG:4326", "EPSG:32631"])
def test_arrow_tables_with_a_geometry_are_read(encoding, zoned_crs):
    frame = make_frame().drop(columns="trip").to_crs(zoned_crs)
    points = frame.geometry
    xy = [pa.array(axis) for axis in (points.x, points.y)]
    pairs = pa.array(np.ravel([points.x, points.y], order="F"))
    storage = {
        "wkb": pa.array(points.to_wkb()),
        "bare wkb": pa.array(points.to_wkb()),
        "point": pa.StructArray.from_arrays(xy, ["x", "y"]),
        "interleaved": pa.FixedSizeListArray.from_arrays(pairs, 2),
    }[encoding]
    known = {"ARROW:extension:name": "geoarrow.wkb" if encoding == "wkb" else "geoarrow.point"}
    known["ARROW:extension:metadata"] = json.dumps({"crs": zoned_crs})
    field = pa.field("geometry", storage.type, metadata=None if encoding == "bare wkb" else known)
    columns = {"user": pa.array(frame["user"]), "time": pa.array(frame["time"].dt.tz_localize("UTC"))}
    fields = [pa.field(name, column.type) for name, column in columns.items()]
    table = pa.table([*columns.values(), storage], schema=pa.schema([*fields, field]))
    if encoding == "bare wkb":
        with pytest.raises(ValueError, match="the CRS of 'geometry' is unknown"):
            pg.read_table(table)
    traces = pg.read_table(table, as_traces=True, crs=zoned_crs if encoding == "bare wkb" else None)
    expected = pg.Traces.from_frame(frame)
    assert traces.space.crs == zoned_crs
    assert (traces.points == expected.points).all()
    assert (traces.times == expected.times).all()
    assert list(traces.to_frame().columns) == ["user", "time", "geometry"]


def test_geopandas_gives_its_points_by_arrow():
    frame = make_frame().drop(columns="trip").assign(time=lambda table: table["time"].dt.tz_localize("UTC"))
    for encoding in ("WKB", "geoarrow"):
        table = pa.table(frame.to_arrow(geometry_encoding=encoding))
        traces = pg.read_table(table, as_traces=True)
        assert (traces.points == pg.Traces.from_frame(frame).points).all()


def test_polars_frames_are_read():
    polars = pytest.importorskip("polars")
    frame = polars.from_arrow(arrow_table())
    check_arrow(frame)
    check_arrow(frame.with_columns(polars.col("user").cast(polars.Categorical)))


def test_relations_of_duckdb_are_read():
    duckdb = pytest.importorskip("duckdb")
    records = arrow_table()  # noqa: F841
    check_arrow(duckdb.sql("SELECT * FROM records"))


def test_errors_of_arrow_tables_name_their_kind():
    with pytest.raises(ValueError, match=r"'pyarrow\.Table'.*No lat column"):
        pg.read_table(arrow_table().drop_columns("lat"))
    with pytest.raises(ValueError, match="a table has none"):
        pg.read_table(arrow_table(), user="file")


def test_the_docs_have_a_row_for_every_format():
    lines = [line.split(" | ") for line in format_table().splitlines()[2:]]
    rows = {name.strip("`"): cells for _, name, *cells in lines}
    assert list(rows) == list(FORMATS)
    assert all(f"`{ending}`" in format_table() for ending in WRITERS)
    for name, form in FORMATS.items():
        files, reader, library, _ = rows[name]
        assert all(f"`{pattern}`" in files for pattern in form.files)
        assert re.fullmatch(r"`read_\w+`", reader)
        assert library == form.library
    assert "`write`" in rows["gpx"][3]
    assert "`write`" in rows["table"][3]
    assert "`write`" not in rows["fit"][3]
