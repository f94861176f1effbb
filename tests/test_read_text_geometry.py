"""Text tables with a column of geometries: WKT, WKB in hexadecimal digits, and the trips of Porto's taxis."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from tables import ROWS, assert_rows, refused, written

import promesse_geo as pg

NO_SRID = "ignore:read_table took the geometries"
NO_Z = "ignore:The elevations"


def plain(x, y, srid):
    return f"POINT ({x} {y})"


def spaced(x, y, srid):
    return f"  point({x}   {y} ) "


def tagged(x, y, srid):
    return f"SRID={srid};POINT({x} {y})"


def with_z(x, y, srid):
    return f"SRID={srid};POINT Z ({x} {y} 7)"


def with_m(x, y, srid):
    return f"SRID={srid};POINT ZM ({x} {y} 7 8)"


def as_hex(x, y, srid, z=None, **options):
    point = shapely.Point(x, y) if z is None else shapely.Point(x, y, z)
    return shapely.to_wkb(shapely.set_srid(point, srid), hex=True, **options)


def ewkb(x, y, srid):
    return as_hex(x, y, srid, include_srid=True)


def ewkb_with_z(x, y, srid):
    return as_hex(x, y, srid, z=7, include_srid=True)


def big_endian(x, y, srid):
    return as_hex(x, y, srid, include_srid=True, byte_order=0).lower()


def iso(x, y, srid):
    return as_hex(x, y, srid, z=7, flavor="iso")


def bytea(x, y, srid):
    return "\\x" + as_hex(x, y, srid).lower()


NOTATIONS = (plain, spaced, tagged, with_z, with_m, ewkb, ewkb_with_z, big_endian, iso, bytea)
notations = pytest.mark.parametrize("notation", NOTATIONS)


def table_of(folder, shapes, name="where", name_of_file="table.csv"):
    rows = [[user, time, shape] for (user, time, *_), shape in zip(ROWS * len(shapes), shapes, strict=False)]
    lines = [["user", "time", name], *rows]
    return written(folder, "".join(f'{user};{time};"{shape}"\n' for user, time, shape in lines), name_of_file)


@notations
@pytest.mark.filterwarnings(NO_SRID, NO_Z)
def test_points_in_one_column_are_read_whatever_its_name(tmp_path, notation):
    shapes = [notation(float(lon), float(lat), 4326) for _, _, lon, lat in ROWS]
    for name in ("geom", "WKT", "some name"):
        frame = pg.read_table(table_of(tmp_path, shapes, name))
        assert frame.active_geometry_name == name
        assert_rows(frame)


degrees = st.tuples(st.floats(-179, 179), st.floats(-80, 80))


@given(points=st.lists(st.tuples(degrees, st.sampled_from(NOTATIONS)), min_size=1, max_size=60))
@pytest.mark.filterwarnings(NO_SRID, NO_Z)
def test_coordinates_are_those_that_were_written(tmp_path_factory, points):
    unit = {False: (tagged, with_z, with_m, ewkb, ewkb_with_z, big_endian), True: (plain, spaced, iso, bytea)}
    folder = tmp_path_factory.mktemp("points")
    for untagged, kinds in unit.items():
        some = [(*place, notation) for place, notation in points if notation in kinds]
        if some:
            lines = "".join(f"a,{1_700_000_000 + i},{kind(x, y, 4326)}\n" for i, (x, y, kind) in enumerate(some))
            path = written(folder, "user,time,geom\n" + lines)
            with pytest.warns(UserWarning, match="as seconds"):
                frame = pg.read_table(path)
            np.testing.assert_allclose(frame.geometry.x, [x for x, _, _ in some], rtol=0, atol=1e-9)
            np.testing.assert_allclose(frame.geometry.y, [y for _, y, _ in some], rtol=0, atol=1e-9)
            assert untagged or frame.crs == "EPSG:4326"


@pytest.mark.parametrize("notation", [tagged, ewkb])
def test_the_srid_is_the_crs(tmp_path, notation):
    path = table_of(tmp_path, [notation(500_000 + i, 5_000_000, 32631) for i in range(3)])
    assert pg.read_table(path).crs == "EPSG:32631"
    assert pg.read_table(path, crs=32631).geometry.x.max() == 500_002
    assert "another one" in refused(path, crs="EPSG:4326")


def test_an_unknown_srid_and_several_are_refused(tmp_path):
    unknown = table_of(tmp_path, [tagged(1, 2, 999_999)])
    assert "999999, which is no code of EPSG" in refused(unknown)
    assert pg.read_table(unknown, crs="EPSG:4326").crs == "EPSG:4326"
    assert "several SRIDs (4258 and 4326)" in refused(table_of(tmp_path, [tagged(1, 2, 4326), tagged(1, 2, 4258)]))
    assert "several SRIDs (none and 4258)" in refused(table_of(tmp_path, [plain(1, 2, 0), tagged(1, 2, 4258)]))


def test_points_without_srid_are_degrees_or_need_a_crs(tmp_path):
    with pytest.warns(UserWarning, match="no SRID, as longitudes and latitudes"):
        assert pg.read_table(table_of(tmp_path, [plain(4.8, 45.7, 0)])).crs == "EPSG:4326"
    path = table_of(tmp_path, [plain(500_000, 5_000_000, 0)])
    assert "no SRID" in refused(path)
    assert pg.read_table(path, crs="EPSG:32631").crs == "EPSG:32631"


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ("LINESTRING M (1 2 3, 4 5 6)", "LineString"),
        ("MULTIPOINT ((1 2), (3 4))", "MultiPoint"),
        ("POLYGON ((0 0, 1 0, 1 1, 0 0))", "Polygon"),
        (shapely.to_wkb(shapely.from_wkt("LINESTRING (1 2, 4 5)"), hex=True), "LineString"),
    ],
)
def test_other_geometries_are_named_with_a_remedy(tmp_path, shape, kind):
    words = refused(table_of(tmp_path, [shape]))
    assert kind in words
    assert "ST_DumpPoints" in words


@pytest.mark.filterwarnings(NO_SRID)
def test_missing_and_damaged_points_are_counted(tmp_path):
    path = table_of(tmp_path, [plain(4.84, 45.75, 0), "", "POINT EMPTY", "NULL", "POINT (4.8", plain(4.85, 45.76, 0)])
    assert "4 records of 6" in refused(path)
    with pytest.warns(UserWarning, match="4 records"):
        assert len(pg.read_table(path, errors="skip")) == 2


def test_columns_of_coordinates_come_before_geometries(tmp_path):
    path = written(tmp_path, "user,time,lon,lat,geom\na,2024-03-04T08:00:00Z,1,2,POINT (3 4)\n")
    assert pg.read_table(path).geometry.x.tolist() == [1]
    path = written(tmp_path, "user,time,a,b,geom\na,2024-03-04T08:00:00Z,1,2,SRID=4326;POINT (3 4)\n")
    assert pg.read_table(path, lon="a", lat="b").geometry.x.tolist() == [1]
    assert pg.read_table(path).geometry.x.tolist() == [3]
    path = written(tmp_path, "user,time,X,Y,WKT\na,2024-03-04T08:00:00Z,1,2,SRID=4326;POINT (3 4)\n")
    assert pg.read_table(path).geometry.x.tolist() == [3]
    assert pg.read_table(path, crs="EPSG:4326").geometry.x.tolist() == [1]


def test_of_several_geometries_the_known_name_is_taken(tmp_path):
    shapes = "SRID=4326;POINT (1 2),SRID=3857;POINT (3 4)"
    path = written(tmp_path, f"user,time,geom,web\na,2024-03-04T08:00:00Z,{shapes}\n")
    assert pg.read_table(path).crs == "EPSG:4326"
    path = written(tmp_path, f"user,time,one,other\na,2024-03-04T08:00:00Z,{shapes}\n")
    assert "'one' and 'other'" in refused(path)


def test_a_user_of_hexadecimal_digits_is_no_geometry(tmp_path):
    path = written(tmp_path, "user,time,where\n01ab34567890abcdef01ab34567890abcdef01ab34,2024-03-04T08:00:00Z,here\n")
    assert "No lon column" in refused(path)


def test_a_table_without_records_has_its_geometry_by_name(tmp_path):
    frame = pg.read_table(written(tmp_path, "user,time,geom\n"))
    assert len(frame) == 0
    assert frame.active_geometry_name == "geom"


@pytest.mark.filterwarnings(NO_SRID)
def test_files_and_folders_of_geometries_are_read_by_read_file(tmp_path):
    shapes = [plain(float(lon), float(lat), 0) for _, _, lon, lat in ROWS]
    assert_rows(pg.read_file(table_of(tmp_path, shapes)))
    assert_rows(pg.read_file(tmp_path))


PORTO = ["TRIP_ID", "CALL_TYPE", "ORIGIN_CALL", "ORIGIN_STAND", "TAXI_ID", "TIMESTAMP", "DAY_TYPE", "MISSING_DATA"]
positions = st.lists(st.tuples(st.floats(-9, -8).map(lambda x: round(x, 6)), st.floats(41, 42)), max_size=9)
trips = st.lists(
    st.tuples(st.integers(20_000_001, 20_000_004), st.integers(1_372_636_853, 1_404_172_787), positions, st.booleans()),
    min_size=1,
    max_size=12,
)


def porto(folder, trips, name="train.csv"):
    path = folder / name
    with path.open("w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow([*PORTO, "POLYLINE"])
        for number, (taxi, start, line, is_missing) in enumerate(trips):
            row = [f"{start}{number:09d}", "B", "", "7", taxi, start, "A", is_missing]
            writer.writerow([*row, json.dumps([list(place) for place in line], separators=(",", ":"))])
    return path


@given(trips=trips.filter(lambda trips: any(line for _, _, line, _ in trips)))
@pytest.mark.filterwarnings("ignore:read_table took")
def test_trips_of_porto_are_positions_15_s_apart(tmp_path_factory, trips):
    path = porto(tmp_path_factory.mktemp("porto"), trips)
    traces = pg.read_table(path, as_traces=True)
    expected = {}
    with path.open(newline="") as file:
        for trip in csv.DictReader(file):
            for i, (lon, lat) in enumerate(json.loads(trip["POLYLINE"])):
                record = (int(trip["TIMESTAMP"]) + 15 * i, lon, lat)
                expected.setdefault(int(trip["TAXI_ID"]), []).append(record)
    assert traces.users.tolist() == sorted(expected)
    x, y = traces.coordinates()
    for user, start, end in zip(traces.users, traces.offsets[:-1], traces.offsets[1:], strict=True):
        records = sorted(expected[user], key=lambda record: record[0])
        np.testing.assert_array_equal(traces.times[start:end], [time * 10**9 for time, _, _ in records])
        np.testing.assert_allclose(x[start:end], [lon for _, lon, _ in records], rtol=0, atol=1e-9)
        np.testing.assert_allclose(y[start:end], [lat for _, _, lat in records], rtol=0, atol=1e-9)


def test_each_trip_of_porto_is_a_segment_and_what_is_missing_is_said(tmp_path):
    line = [(-8.61, 41.14), (-8.62, 41.15)]
    trips = [(20_000_001, 1_372_636_853, line, False), (20_000_001, 1_372_640_000, line, True)]
    trips += [(20_000_001, 1_372_650_000, [], False), (20_000_002, 1_372_640_000, line, False)]
    with pytest.warns(UserWarning, match=r"15 s apart \(POLYLINE has none in 1 trip; some are missing in 1 trip\)"):
        frame = pg.read_file(porto(tmp_path, trips))
    assert frame["TAXI_ID"].tolist() == [20_000_001] * 4 + [20_000_002] * 2
    assert frame["TRIP_ID"].tolist() == [0, 0, 1, 1, 0, 0]
    assert frame["TIMESTAMP"].iloc[1] == pd.Timestamp(1_372_636_868, unit="s", tz="UTC")


@pytest.mark.filterwarnings("ignore:read_table took")
def test_a_cut_trip_of_porto_is_counted(tmp_path):
    path = porto(tmp_path, [(1, 1_372_636_853, [(-8.61, 41.14)], False)])
    header, row = path.read_text().splitlines()
    path.write_text("\n".join([header, row, row.replace('.14]]"', '.14],[-8."'), ""]))
    assert "1 record of 2" in refused(path)
    with pytest.warns(UserWarning, match="list of positions that is cut"):
        assert len(pg.read_table(path, errors="skip")) == 1


def test_lists_of_positions_of_others_have_no_times(tmp_path):
    path = written(tmp_path, 'user,time,route\na,2024-03-04T08:00:00Z,"[[1,2],[3,4]]"\n')
    assert "without the time of each" in refused(path)
