"""Checks of files before publication: files of ours pass, and whatever else a file holds is reported."""

import json
from dataclasses import replace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pytest
import shapely

import promesse_geo as pg
from promesse_geo.audit import check_files, file_mechanism
from promesse_geo.io.writers import output

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*could not be protected",
    "ignore:The elevations",
    "ignore:.*files overlap",
    "ignore:.*not read,",
    "ignore:The times have no zone",
)

FORMATS = ["parquet", "geoparquet", "gpkg", "fgb", "geojson", "json", "csv", "gpx"]
WRITTEN, COLUMNS = "written by promesse-geo", "no other columns"


@pytest.fixture(scope="module")
def safe():
    return pg.Promesse(200).protect(pg.prepare(pg.make_city(users=3, days=1, recorder="phone"), seed=1))


def check(path, **options):
    named = {name: options.pop(name) for name in ("lon", "lat") if name in options}
    traces = pg.read_file(path, **named, **options, as_traces=True)
    table = check_files(path, traces).set_index("test")
    assert list(table.index) == [COLUMNS, WRITTEN]
    assert "secret" not in table.to_string()
    return table


def verdicts(path, **options):
    return check(path, **options)["verdict"].tolist()


def reason(path, test=WRITTEN, **options):
    return check(path, **options).loc[test, "reason"]


ZONES, CRS = (None, "UTC", "Europe/Paris"), (4326, 3857, 32631)
MECHANISMS = (None, pg.Promesse(200), pg.GeoIndistinguishability(0.01, grid=10, seed="secret"))


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize(
    ("zone", "crs", "mechanism"),  # of these, all pairs
    [(ZONES[i], CRS[j], MECHANISMS[(i + j) % 3]) for i in range(3) for j in range(3)],
)
def test_files_of_ours_pass(tmp_path, safe, ending, zone, crs, mechanism):
    frame = safe.to_crs(crs).assign(time=safe["time"].dt.tz_localize(zone))
    options = {"crs": crs} if ending == "csv" and crs != 4326 else {}
    pg.write(frame, tmp_path / f"safe.{ending}", mechanism=mechanism)
    assert verdicts(tmp_path / f"safe.{ending}", **options) == ["passed", "passed"]


@pytest.mark.parametrize("ending", FORMATS)
def test_files_of_ours_pass_under_other_names_and_without_records_or_users(tmp_path, safe, ending):
    if ending == "gpx":
        pytest.skip("it has no columns")
    renamed = safe.rename(columns={"user": "cab", "time": "stamp"}).rename_geometry("place")
    pg.write(renamed, tmp_path / f"named.{ending}", user="cab", time="stamp")
    assert verdicts(tmp_path / f"named.{ending}") == ["passed", "passed"]
    pg.write(safe.drop(columns="user"), tmp_path / f"one.{ending}", user=None)
    assert verdicts(tmp_path / f"one.{ending}", user=None) == ["passed", "passed"]
    pg.write(safe.assign(user=7), tmp_path / f"number.{ending}")
    assert verdicts(tmp_path / f"number.{ending}") == ["passed", "passed"]
    if ending not in ("geojson", "json"):  # which have no columns without records
        pg.write(safe.iloc[:0], tmp_path / f"empty.{ending}")
        assert verdicts(tmp_path / f"empty.{ending}") == ["passed", "passed"]


def write_by_others(frame, path):
    """Write a frame as geopandas and pandas do."""
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".csv":
        others = frame.drop(columns="geometry").assign(lon=frame.geometry.x, lat=frame.geometry.y)
        others.to_csv(path, index=False)
    else:
        frame.to_file(path)


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "fgb", "geojson", "csv"])
def test_files_of_others_are_reviewed(tmp_path, safe, ending):
    path = tmp_path / f"safe.{ending}"
    write_by_others(safe, path)
    assert verdicts(path) == ["passed", "review"]
    assert "pseudonymize" in reason(path)


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "fgb", "geojson", "csv"])
@pytest.mark.parametrize("column", ["phone", "speed"])
def test_other_columns_fail_though_reading_ignores_them(tmp_path, safe, ending, column):
    path = tmp_path / f"safe.{ending}"
    write_by_others(safe.assign(**{column: "secret"}), path)
    assert verdicts(path) == ["failed", "review"]
    assert repr(column) in reason(path, COLUMNS)


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "geojson"])
def test_coordinates_besides_a_geometry_fail(tmp_path, safe, ending):
    path = tmp_path / f"safe.{ending}"
    write_by_others(safe.assign(lon=1.5, lat=2.5), path)
    assert "'lon' and 'lat'" in reason(path, COLUMNS)


def test_columns_of_coordinates_are_no_other_columns(tmp_path, safe):
    table = safe.drop(columns="geometry").assign(Longitude=safe.geometry.x, Latitude=safe.geometry.y)
    table.to_csv(tmp_path / "safe.csv", index=False)
    table.to_parquet(tmp_path / "safe.parquet", index=False)
    for ending in ("csv", "parquet"):
        assert verdicts(tmp_path / f"safe.{ending}") == ["passed", "review"]
    named = table.rename(columns={"Longitude": "east", "Latitude": "north"}).assign(x=1.0)
    named.to_csv(tmp_path / "named.csv", index=False)
    assert reason(tmp_path / "named.csv", COLUMNS, lon="east", lat="north").endswith("'x'")


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "fgb", "geojson"])
def test_elevations_fail(tmp_path, safe, ending):
    path = tmp_path / f"high.{ending}"
    points = shapely.force_3d(safe.geometry.to_numpy(), 7.0)
    write_by_others(safe.set_geometry(points, crs=4326), path)
    assert "'Z or M'" in reason(path, COLUMNS)


def test_metadata_of_others_is_reviewed(tmp_path, safe):
    path = tmp_path / "safe.parquet"
    pg.write(safe, path)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"author": b"secret"}), path)
    assert verdicts(path) == ["passed", "review"]
    assert "'author'" in reason(path)
    pg.write(safe, path, force=True)
    field = table.schema.field("time").with_metadata({b"note": b"secret"})
    pq.write_table(table.cast(table.schema.set(1, field)), path)
    assert verdicts(path) == ["passed", "review"]


def test_users_in_a_dictionary_without_a_record_are_reviewed(tmp_path, safe):
    users = pd.Categorical(safe["user"], categories=[*safe["user"].unique(), "secret"])
    safe.assign(user=users).to_parquet(tmp_path / "safe.parquet")
    assert verdicts(tmp_path / "safe.parquet") == ["passed", "review"]


@pytest.mark.parametrize("stores_type", [True, False])
def test_users_in_a_dictionary_without_a_record_are_reviewed_under_our_metadata(tmp_path, safe, stores_type):
    path = tmp_path / "safe.parquet"
    pg.write(safe.assign(user=safe["user"].astype("str")), path)
    table = pq.read_table(path)
    codes, users = pd.factorize(table["user"].to_pandas())
    users = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array([*users, "secret"]))
    changed = table.set_column(0, "user", users)
    with pq.ParquetWriter(path, changed.schema, store_schema=stores_type) as writer:
        writer.write_table(changed)
        writer.add_key_value_metadata(table.schema.metadata)
    assert verdicts(path) == ["passed", "review"]


@pytest.mark.parametrize("dimensions", ["z", "m", "srid", "big-endian"])
@pytest.mark.parametrize("row", [0, -1])
def test_points_in_another_form_are_found_under_our_metadata(tmp_path, safe, dimensions, row):
    path = tmp_path / "safe.parquet"
    pg.write(safe, path)
    table = pq.read_table(path)
    points = table["geometry"].to_pylist()
    point = shapely.from_wkb(points[row])
    points[row] = {
        "z": shapely.to_wkb(shapely.force_3d(point, 7.0)),
        "m": shapely.to_wkb(shapely.from_wkt(f"POINT M ({point.x} {point.y} 7)"), flavor="iso"),
        "srid": shapely.to_wkb(shapely.set_srid(point, 1234567), include_srid=True),
        "big-endian": shapely.to_wkb(point, byte_order=0),
    }[dimensions]
    pq.write_table(table.set_column(2, "geometry", pa.array(points, pa.binary())), path)
    has_more = dimensions in ("z", "m")
    assert verdicts(path) == ["failed" if has_more else "passed", "review"]
    assert ("'Z or M'" in reason(path, COLUMNS)) == has_more
    assert "points" in reason(path)


def test_types_that_are_not_written_are_reviewed_under_our_metadata(tmp_path, safe):
    path = tmp_path / "safe.parquet"
    pg.write(safe.assign(user=7), path)
    table = pq.read_table(path)
    for kind in (pa.int32(), pa.string_view()):
        users = pa.array(["7"] * len(table), kind) if kind == pa.string_view() else table["user"].cast(kind)
        pq.write_table(table.set_column(0, "user", users), path)
        assert verdicts(path) == ["passed", "review"]


@pytest.mark.parametrize("more", [[7], [7, 8]])
def test_more_than_two_numbers_of_a_geojson_point_fail(tmp_path, safe, more):
    path = tmp_path / "a.geojson"
    pg.write(safe, path)
    lines = path.read_text().splitlines()
    feature = json.loads(lines[-3])
    feature["geometry"]["coordinates"] += more
    path.write_text("\n".join([*lines[:-3], json.dumps(feature), *lines[-2:]]) + "\n")
    assert verdicts(path)[0] == "failed"
    assert "'Z or M'" in reason(path, COLUMNS)


def test_columns_in_another_order_are_reviewed(tmp_path, safe):
    path = tmp_path / "safe.parquet"
    pg.write(safe, path)
    table = pq.read_table(path)
    pq.write_table(table.select(["time", "user", "geometry"]), path)
    assert verdicts(path) == ["passed", "review"]


def test_a_second_layer_or_table_of_a_geopackage_fails(tmp_path, safe):
    path = tmp_path / "safe.gpkg"
    pg.write(safe, path)
    people = pa.table({"name": ["secret"]})
    pyogrio.write_arrow(people, path, layer="people", append=True)
    assert verdicts(path) == ["passed", "failed"]
    assert "2 layers" in reason(path)


def test_a_packed_file_is_reviewed(tmp_path, safe):
    write_by_others(safe, tmp_path / "safe.csv")
    packed = tmp_path / "safe.csv.gz"
    pd.read_csv(tmp_path / "safe.csv").to_csv(packed, index=False)
    assert verdicts(packed) == ["passed", "review"]


def test_a_format_that_we_do_not_write_is_reviewed(tmp_path):
    (tmp_path / "a.gpx").write_text(
        '<gpx xmlns="http://www.topografix.com/GPX/1/1" version="1.1" creator="secret"><trk><trkseg>'
        '<trkpt lat="48" lon="2"><time>2008-05-17T10:00:00Z</time></trkpt></trkseg></trk></gpx>'
    )
    assert verdicts(tmp_path / "a.gpx") == ["review", "review"]


def test_gpx_of_ours_passes_without_records_or_users(tmp_path, safe):
    pg.write(safe.drop(columns="user"), tmp_path / "one.gpx", user=None)
    pg.write(safe.iloc[:0], tmp_path / "empty.gpx")
    for name in ("one.gpx", "empty.gpx"):
        assert verdicts(tmp_path / name) == ["passed", "passed"]
    text = (tmp_path / "one.gpx").read_text(encoding="utf-8")
    (tmp_path / "one.gpx").write_text(text.replace("<time>", "<ele>7</ele><time>", 1), encoding="utf-8")
    assert verdicts(tmp_path / "one.gpx") == ["review", "review"]


@pytest.mark.filterwarnings("ignore:.*files overlap in time")
def test_each_file_of_a_folder_is_checked(tmp_path, safe):
    users = safe["user"].unique()
    for part, some in enumerate((users[:1], users[1:])):
        pg.write(safe[safe["user"].isin(some)], tmp_path / f"{part}.parquet")
    assert verdicts(tmp_path) == ["passed", "passed"]
    write_by_others(safe.assign(phone="secret"), tmp_path / "others.parquet")
    assert verdicts(tmp_path) == ["failed", "review"]
    (tmp_path / "people.txt").write_text("secret")
    assert "1 file that" in reason(tmp_path)
    assert verdicts(tmp_path) == ["failed", "failed"]


def test_what_is_written_again_passes(tmp_path, safe):
    for ending in ("parquet", "gpkg", "csv", "geojson"):
        dirty, clean = tmp_path / f"dirty.{ending}", tmp_path / f"clean.{ending}"
        write_by_others(safe.assign(phone="secret"), dirty)
        pg.write(pg.pseudonymize(pg.read_file(dirty, as_traces=True)), clean)
        assert verdicts(clean) == ["passed", "passed"]
        assert b"secret" not in clean.read_bytes()


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "fgb"])
def test_a_file_names_its_mechanism(tmp_path, safe, ending):
    path = tmp_path / f"safe.{ending}"
    pg.write(safe, path, mechanism=pg.Promesse(200))
    assert file_mechanism(path).epsilon == 200
    pg.write(safe, path, force=True)
    assert file_mechanism(path) == pg.Promesse(200)
    for mechanism in (pg.GeoIndistinguishability(0.01, grid=3), pg.WaitForMe(3, 150)):
        pg.write(safe, path, mechanism=mechanism, force=True)
        assert file_mechanism(path) == mechanism
    pg.write(replace(pg.Traces.from_frame(safe), protection=None), path, force=True)
    assert file_mechanism(path) is None


@pytest.mark.parametrize("ending", ["csv", "geojson", "gpx"])
def test_formats_without_metadata_name_no_mechanism(tmp_path, safe, ending):
    pg.write(safe, tmp_path / f"safe.{ending}", mechanism=pg.Promesse(200))
    assert file_mechanism(tmp_path / f"safe.{ending}") is None


def test_a_folder_names_its_mechanism_if_all_files_do(tmp_path, safe):
    for part in range(2):
        pg.write(safe, tmp_path / f"{part}.parquet", mechanism=pg.Promesse(200))
    assert file_mechanism(tmp_path) == pg.Promesse(200)
    pg.write(safe, tmp_path / "2.parquet", mechanism=pg.Promesse(100))
    assert file_mechanism(tmp_path) is None


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[]",
        '{"mechanism": "Unheard", "parameters": {}}',
        '{"mechanism": "Promesse", "parameters": {"epsilon": -1}}',
        '{"mechanism": "Promesse", "parameters": {"secret": 1}}',
        '{"mechanism": "Promesse"}',
    ],
)
def test_a_mechanism_that_is_not_known_is_ignored_with_a_warning(tmp_path, safe, text):
    path = tmp_path / "safe.parquet"
    pg.write(safe, path)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"promesse_geo": text.encode()}), path)
    with pytest.warns(UserWarning, match="mechanism that is not known") as caught:
        assert file_mechanism(path) is None
    assert "secret" not in str(caught[0].message)


def test_a_file_of_another_format_names_no_mechanism(tmp_path):
    (tmp_path / "notes.txt").write_text("secret")
    assert file_mechanism(tmp_path / "notes.txt") is None


@pytest.mark.parametrize("text", ["secret", '{"mechanism": null, "seed": "secret"}', '{"mechanism": "Secret"}'])
def test_only_what_write_stores_under_our_key_passes(tmp_path, safe, text):
    pg.write(safe, tmp_path / "a.parquet", mechanism=pg.Promesse(200))
    table = pq.read_table(tmp_path / "a.parquet")
    pq.write_table(
        table.replace_schema_metadata(table.schema.metadata | {b"promesse_geo": text}), tmp_path / "b.parquet"
    )
    assert verdicts(tmp_path / "b.parquet") == ["passed", "review"]
    path = tmp_path / "c.gpkg"
    pyogrio.write_dataframe(safe, path, layer="traces", layer_metadata={"promesse_geo": text})
    assert verdicts(path)[1] == "review"


@pytest.mark.filterwarnings("ignore:.*does not exist")
@pytest.mark.parametrize("role", ["user", "time", "segment"])
def test_a_role_under_our_key_that_names_no_column_is_reported(tmp_path, safe, role):
    named = safe.rename(columns={"user": "cab", "time": "stamp"})
    pg.write(named, tmp_path / "a.parquet", user="cab", time="stamp")
    assert verdicts(tmp_path / "a.parquet") == ["passed", "passed"]
    table = pq.read_table(tmp_path / "a.parquet")
    about = json.loads(table.schema.metadata[b"promesse_geo"])
    assert (about["user"], about["time"]) == ("cab", "stamp")
    changed = table.schema.metadata | {b"promesse_geo": json.dumps(about | {role: "secret"}).encode()}
    pq.write_table(table.replace_schema_metadata(changed), tmp_path / "b.parquet")
    assert verdicts(tmp_path / "b.parquet", user="cab", time="stamp") == ["passed", "review"]


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "fgb"])
def test_files_of_older_versions_are_ours_too(tmp_path, safe, ending, monkeypatch):
    monkeypatch.setattr(output, "describe", lambda protection, names: json.dumps(protection or {"mechanism": None}))
    pg.write(safe.rename(columns={"user": "cab"}), tmp_path / f"old.{ending}", user="cab", mechanism=pg.Promesse(200))
    assert verdicts(tmp_path / f"old.{ending}", user="cab") == ["passed", "passed"]
    assert file_mechanism(tmp_path / f"old.{ending}") == pg.Promesse(200)


def test_a_folder_names_its_mechanism_whatever_the_columns_are_called(tmp_path, safe):
    for name in ("cab", "uid"):
        renamed = safe.rename(columns={"user": name})
        pg.write(renamed, tmp_path / f"{name}.parquet", user=name, mechanism=pg.Promesse(200))
    assert file_mechanism(tmp_path) == pg.Promesse(200)


def test_other_members_of_geoparquet_metadata_are_reported(tmp_path, safe):
    pg.write(safe, tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    geo = json.loads(table.schema.metadata[b"geo"])
    for changed in (geo | {"notes": "secret"}, geo | {"columns": {"geometry": geo["columns"]["geometry"] | {"a": 1}}}):
        metadata = table.schema.metadata | {b"geo": json.dumps(changed)}
        pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "b.parquet")
        assert verdicts(tmp_path / "b.parquet") == ["passed", "review"]


@pytest.mark.parametrize("level", ["collection", "feature", "geometry"])
def test_other_members_of_geojson_are_reported(tmp_path, safe, level):
    path = tmp_path / "a.geojson"
    pg.write(safe, path)
    lines = path.read_text().splitlines()
    if level == "collection":
        lines.insert(1, '"author": "secret",')
    else:
        number = next(i for i, line in enumerate(lines) if '"Feature"' in line)
        feature = json.loads(lines[number].rstrip(","))
        (feature if level == "feature" else feature["geometry"])["secret"] = 1
        lines[number] = json.dumps(feature) + ","
    path.write_text("\n".join(lines) + "\n")
    assert verdicts(path) == ["passed", "review"]
