"""Arrow tables of whole users are protected as frames are."""

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import promesse_geo as pg

pytestmark = pytest.mark.filterwarnings("ignore:.*could not be protected", "ignore:.*rivacy zones", "ignore:The data")
PROMESSE = pg.Promesse(200)


@pytest.fixture(scope="module")
def city():
    return pg.make_city(users=6, days=2, seed=1, recorder="phone")


def as_table(frame, *, points="xy", users="text"):
    """A frame as a table, with points and users of some kind."""
    names = frame["user"].astype(str)
    columns = {
        "text": pa.array(names),
        "large text": pa.array(names, pa.large_string()),
        "dictionary": pa.array(names).dictionary_encode(),
        "view": pa.array(names).cast(pa.string_view()),
        "integers": pa.array(names.str[-3:].astype(int)),
    }
    x, y = frame.geometry.x.to_numpy(), frame.geometry.y.to_numpy()
    places = {
        "xy": {"lon": pa.array(x), "lat": pa.array(y)},
        "wkb": {"geometry": pa.array(shapely.to_wkb(frame.geometry.array))},
        "point": {"geometry": pa.StructArray.from_arrays([pa.array(x), pa.array(y)], ["x", "y"])},
    }
    table = pa.table({"user": columns[users], "time": pa.array(frame["time"]), **places[points]})
    if points == "point":
        kind = {"ARROW:extension:name": "geoarrow.point", "ARROW:extension:metadata": '{"crs": "EPSG:4326"}'}
        field = table.schema.field("geometry").with_metadata(kind)
        table = table.cast(table.schema.set(2, field))
    return table


def coordinates(table):
    if "lon" in table.column_names:
        return np.column_stack([table.column("lon"), table.column("lat")])
    geometry = table.column("geometry").combine_chunks()
    if pa.types.is_struct(geometry.type):
        return np.column_stack([geometry.field("x"), geometry.field("y")])
    return shapely.get_coordinates(shapely.from_wkb(geometry.to_numpy(zero_copy_only=False)))


@pytest.mark.parametrize("points", ["xy", "wkb", "point"])
@pytest.mark.parametrize("users", ["text", "large text", "dictionary", "view", "integers"])
def test_a_table_is_protected_as_its_frame(city, points, users):
    safe = PROMESSE.protect(city)
    found = pg.protect_arrow(as_table(city, points=points, users=users), PROMESSE, crs="EPSG:4326")
    names = [str(user)[-3:].zfill(3) for user in found.column("user").to_pylist()]
    assert names == safe["user"].str[-3:].tolist()
    assert pa.types.is_dictionary(found.schema.field("user").type) == (users == "dictionary")
    assert (found.column("time").to_pandas().to_numpy() == safe["time"].to_numpy()).all()
    assert (coordinates(found) == np.column_stack([safe.geometry.x, safe.geometry.y])).all()


MECHANISMS = [
    PROMESSE,
    pg.Promesse(100, ends=400, seed="s"),
    pg.GeoIndistinguishability(0.01, seed="s"),
    pg.PrivacyZones(600, 500, seed="s"),
    pg.Chain([pg.PrivacyZones(600, 500, seed="s"), pg.Promesse(200, ends=400, seed="t")]),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("tables", [1, 2, 6])
def test_tables_of_whole_users_give_what_one_table_gives(city, mechanism, tables):
    users = sorted(city["user"].unique())
    every = pg.protect_arrow(as_table(city), mechanism)
    parts = [
        pg.protect_arrow(as_table(city[city["user"].isin(users[number::tables])]), mechanism)
        for number in range(tables)
    ]
    order = [("user", "ascending"), ("time", "ascending")]
    assert pa.concat_tables(parts).sort_by(order).equals(every.sort_by(order))
    assert {part.schema.remove_metadata() for part in parts} == {every.schema.remove_metadata()}


def test_a_column_of_positions_orders_equal_times(city):
    tied = city.assign(time=city["time"].dt.floor("30min"))
    table = as_table(tied)
    numbered = table.append_column("file", pa.array(np.arange(len(tied)) // 100)).append_column(
        "row", pa.array(np.arange(len(tied)) % 100)
    )
    shuffled = numbered.take(np.random.default_rng(2).permutation(len(tied)))
    found = pg.protect_arrow(shuffled, PROMESSE, position=["file", "row"])
    assert found.equals(pg.protect_arrow(table, PROMESSE))
    assert not pg.protect_arrow(shuffled, PROMESSE).equals(found)


def test_mechanisms_that_make_breaks_always_have_a_column_of_segments(city):
    far = city[city["user"] == "user-000"].assign(geometry=gpd.points_from_xy([7.0] * 1, [7.0] * 1, crs=4326)[0])
    zones = pg.PrivacyZones(zones=gpd.GeoDataFrame(geometry=[shapely.Point(1, 1)], crs=4326), seed=1)
    assert pg.protect_arrow(as_table(far), zones).column("segment").to_pylist() == [0] * len(far)


def test_breaks_of_the_input_stay(city):
    segments = pa.array(np.arange(len(city)) // 500)
    table = as_table(city).append_column("segment", segments)
    specified = pg.protect_arrow(table, pg.Promesse(200), segment="segment")
    table = table.replace_schema_metadata({"promesse_geo": '{"segment": "segment"}'})
    expected = city.assign(segment=segments).promesse(segment="segment").smooth(200)
    found = pg.protect_arrow(table, PROMESSE)
    assert found.column("segment").to_pylist() == expected["segment"].tolist()
    assert specified.equals(found)


def test_the_result_is_geoparquet_when_it_is_written(city, tmp_path):
    for points, encoding in (("wkb", "WKB"), ("point", "point")):
        path = tmp_path / f"{points}.parquet"
        pq.write_table(pg.protect_arrow(as_table(city, points=points), PROMESSE, crs="EPSG:4326"), path)
        frame = gpd.read_parquet(path)
        assert frame.crs == "EPSG:4326"
        assert (frame.geometry.x == PROMESSE.protect(city).geometry.x).all()
        assert encoding in pq.read_metadata(path).metadata[b"geo"].decode()
        assert pg.read_table(path).attrs["promesse"]["mechanism"] == PROMESSE.description()


def test_a_projected_crs_and_specified_columns_are_used(city):
    metric = city.to_crs(32631)
    x, y = pa.array(metric.geometry.x), pa.array(metric.geometry.y)
    table = pa.table({"who": city["user"], "when": city["time"], "east": x, "north": y})
    found = pg.protect_arrow(
        table, PROMESSE, user="who", time="when", lon="east", lat="north", crs="EPSG:32631", space="plane"
    )
    assert found.column_names == ["who", "when", "east", "north"]
    assert found.column("east").to_pylist() == PROMESSE.protect(metric).geometry.x.tolist()


def test_a_single_trace_has_no_user(city):
    track = city[city["user"] == "user-001"]
    found = pg.protect_arrow(as_table(track).drop(["user"]), PROMESSE, user=None)
    assert found.column_names == ["time", "lon", "lat"]
    assert found.num_rows == len(PROMESSE.protect(track))


def test_an_empty_table_gives_an_empty_one(city):
    found = pg.protect_arrow(as_table(city).slice(0, 0), PROMESSE)
    assert found.num_rows == 0
    assert found.column_names == ["user", "time", "lon", "lat"]


def replaced(table, name, values):
    return table.set_column(table.column_names.index(name), name, values)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda table: table.drop(["user"]), "user"),
        (lambda table: table.drop(["lat"]), "lat"),
        (lambda table: replaced(table, "user", pa.array([1.5] * len(table))), "text or integers"),
        (lambda table: replaced(table, "user", pa.array([None] * len(table), pa.string())), "user"),
        (lambda table: replaced(table, "lat", pa.array([91.0] * len(table))), "latitude"),
        (lambda table: replaced(table, "lat", pa.array([None] * len(table), pa.float64())), "finite"),
        (lambda table: replaced(table, "lon", pa.array(["east"] * len(table))), "numbers"),
        (lambda table: replaced(table, "time", pa.array([True] * len(table))), "datetimes"),
        (lambda table: replaced(table, "time", pa.array([None] * len(table), pa.timestamp("s"))), "no time"),
    ],
)
def test_what_cannot_be_used_is_an_error_that_says_why(city, change, words):
    with pytest.raises((ValueError, TypeError, KeyError), match=words) as caught:
        pg.protect_arrow(change(as_table(city)), PROMESSE)
    assert "user-00" not in str(caught.value)


@pytest.mark.parametrize("table", [None, "file.parquet", 3, [1, 2]])
def test_what_is_no_table_is_refused(table):
    with pytest.raises(TypeError, match="'table' parameter of protect_arrow"):
        pg.protect_arrow(table, PROMESSE)


def test_what_is_no_mechanism_or_position_is_refused(city):
    with pytest.raises(TypeError, match="'mechanism' parameter"):
        pg.protect_arrow(as_table(city), 200)
    with pytest.raises(KeyError, match="'position' parameter"):
        pg.protect_arrow(as_table(city), PROMESSE, position="row")


def test_dictionaries_may_hold_missing_and_repeated_values(city):
    table = as_table(city)
    users = table.column("user").to_pylist()
    keys = [*sorted(set(users)), None, users[0]]
    codes = pa.array([keys.index(user) for user in users], pa.int32())
    found = pg.protect_arrow(
        table.set_column(0, "user", pa.DictionaryArray.from_arrays(codes, pa.array(keys))), PROMESSE
    )
    assert found.column("user").to_pylist() == pg.protect_arrow(table, PROMESSE).column("user").to_pylist()


def test_no_message_quotes_the_table(city):
    table = as_table(city)
    twice = table.append_column("row", table.column("lon")).append_column("row", table.column("lat"))
    with pytest.raises(ValueError, match="one name") as caught:
        pg.protect_arrow(twice, PROMESSE, position="row")
    assert "user-0" not in str(caught.value)


@pytest.mark.parametrize("position", [5, [], [3], b"row"])
def test_a_position_that_is_no_name_is_refused(city, position):
    with pytest.raises(TypeError, match="'position' parameter"):
        pg.protect_arrow(as_table(city), PROMESSE, position=position)


def test_what_numbers_mean_and_elevations_are_reported():
    city = pg.make_city(users=2, days=1, recorder="phone")
    seconds = pa.array(city["time"].astype("int64").to_numpy() // 10**9)
    points = pa.array(shapely.to_wkb(shapely.force_3d(city.geometry.array)))
    table = pa.table({"user": city["user"], "time": seconds, "geometry": points})
    with pytest.warns(UserWarning, match="'time' as seconds since 1970"), pytest.warns(UserWarning, match="elevation"):
        pg.protect_arrow(table, pg.Promesse(200), crs=4326)


def test_invalid_records_are_counted_without_rows_that_mean_nothing(city):
    table = as_table(city)
    lon = table["lon"].to_numpy().copy()
    lon[:3] = np.nan
    table = table.set_column(table.column_names.index("lon"), "lon", pa.array(lon))
    with pytest.raises(
        ValueError, match=r"^3 of [\d,]+ records of a table or partition cannot be used: .*: 3\. Filter"
    ):
        pg.protect_arrow(table, PROMESSE)
