"""The check before publishing: what a file holds beside the records, in each format."""

import base64
import bz2
import gzip
import json
import re
import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pytest
import shapely
from pyproj import CRS

import promesse_geo as pg
from promesse_geo.audit import file_epsilon, file_findings, file_mechanism
from promesse_geo.audit.packed import packed_things
from promesse_geo.audit.spelling import is_plain_number

pytestmark = pytest.mark.filterwarnings("ignore:.*could not be protected", "ignore:The elevations")

FORMATS = ["parquet", "geoparquet", "gpkg", "geojson", "json", "csv"]


@pytest.fixture(scope="module")
def safe():
    return pg.Promesse(200).protect(pg.prepare(pg.make_city(users=3, days=1), seed=1))


def rows(path, **options):
    return file_findings(path, **options).set_index("test")


def failing(path, test="nothing else in the file", **options):
    """Why one test of a file fails; the others pass."""
    table = rows(path, **options)
    assert table["verdict"].drop(test).isin(["passed", "look"]).all()
    assert table.loc[test, "verdict"] == "failed"
    assert "secret" not in table.to_string()
    return table.loc[test, "reason"]


def looked_at(path):
    """Why the metadata of a file is looked at; the others pass."""
    table = rows(path)
    assert table["verdict"].tolist() == ["passed", "passed", "look"]
    assert "secret" not in table.to_string()
    return table.loc["metadata of the file", "reason"]


def passes(path, **options):
    table = rows(path, **options)
    assert table["verdict"].tolist() == ["passed", "passed", "passed"], table.to_string()
    return True


def written(folder, safe, ending, **options):
    pg.write(safe, folder / f"safe.{ending}", **options)
    return folder / f"safe.{ending}"


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Paris"])
@pytest.mark.parametrize("crs", [4326, 3857, 32631])
def test_what_we_write_passes(tmp_path, safe, ending, zone, crs):
    frame = safe.to_crs(crs).assign(time=safe["time"].dt.tz_localize(zone))
    options = {"crs": crs} if ending == "csv" and crs != 4326 else {}
    for mechanism in (None, pg.Promesse(200), pg.GeoIndistinguishability(0.01, grid=10, seed="secret")):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.{ending}"
        pg.write(frame, path, mechanism=mechanism)
        assert passes(path, **options)


@pytest.mark.parametrize("ending", FORMATS)
def test_what_we_write_passes_under_other_names_and_without_records_or_users(tmp_path, safe, ending):
    renamed = safe.rename(columns={"user": "cab", "time": "stamp"}).rename_geometry("place")
    pg.write(renamed, tmp_path / f"named.{ending}", user="cab", time="stamp")
    assert passes(tmp_path / f"named.{ending}", user="cab", time="stamp")
    pg.write(safe.drop(columns="user"), tmp_path / f"one.{ending}", user=None)
    assert passes(tmp_path / f"one.{ending}", user=None)
    pg.write(safe.assign(user=7), tmp_path / f"number.{ending}")
    assert passes(tmp_path / f"number.{ending}")
    pg.write(safe.iloc[:0], tmp_path / f"empty.{ending}")
    assert passes(tmp_path / f"empty.{ending}")


def test_a_large_geopackage_of_ours_passes(tmp_path):
    count = 20_000
    x = np.linspace(2, 3, count)
    traces = pg.Traces.from_arrays(
        x, x + 45, times=np.arange(count) * 10**9, users=["0123456789abcdef"], counts=[count]
    )
    assert passes(written(tmp_path, traces, "gpkg"))


def test_what_geopandas_writes_without_more_passes_but_for_the_moment_of_writing(tmp_path, safe):
    safe.to_file(tmp_path / "safe.geojson")
    assert passes(tmp_path / "safe.geojson")
    safe.to_file(tmp_path / "safe.gpkg")
    assert looked_at(tmp_path / "safe.gpkg").endswith("a moment of writing that we do not write ('gpkg_contents')")


def test_a_file_names_its_epsilon_and_nothing_else(tmp_path, safe):
    for ending in ("parquet", "gpkg"):
        path = tmp_path / f"safe.{ending}"
        pg.write(safe, path, mechanism=pg.Promesse(200))
        assert file_epsilon(path) == 200
        assert file_findings(path)["verdict"].tolist() == ["passed", "passed", "passed"]
    pg.write(safe, tmp_path / "noise.parquet", mechanism=pg.GeoIndistinguishability(0.01))
    assert file_epsilon(tmp_path / "noise.parquet") is None
    pg.write(safe, tmp_path / "safe.csv")
    assert file_epsilon(tmp_path / "safe.csv") is None


def test_foreign_metadata_is_looked_at(tmp_path, safe):
    path = tmp_path / "safe.parquet"
    pg.write(safe, path)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"author": b"secret"}), path)
    assert "'author'" in looked_at(path)


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "geojson", "csv"])
def test_other_columns_of_a_file_fail_though_reading_leaves_them_out(tmp_path, safe, ending):
    path = tmp_path / f"safe.{ending}"
    extended = safe.assign(phone="secret")
    if ending == "parquet":
        extended.to_parquet(path)
    elif ending == "csv":
        extended.drop(columns="geometry").assign(lon=safe.geometry.x, lat=safe.geometry.y).to_csv(path, index=False)
    else:
        extended.to_file(path)
    assert "'phone'" in failing(path, "no other columns")


# Columns


def as_csv(safe, **more):
    return safe.drop(columns="geometry").assign(lon=safe.geometry.x, lat=safe.geometry.y, **more)


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "geojson"])
def test_coordinates_beside_a_geometry_fail(tmp_path, safe, ending):
    frame = safe.assign(lon=1.5, lat=2.5, x=3.5)
    path = tmp_path / f"safe.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_file(path)
    reason = failing(path, "no other columns")
    assert all(name in reason for name in ("'lon'", "'lat'", "'x'"))


@pytest.mark.parametrize("more", ["geometry", "x", "Longitude_true", "uid"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize(("separator", "end"), [(",", "\n"), (";", "\r\n"), ("\t", "\n")])
def test_other_columns_of_a_csv_fail_however_it_is_written(tmp_path, safe, more, encoding, separator, end):
    path = tmp_path / "safe.csv"
    options = {"index": False, "encoding": encoding, "sep": separator, "lineterminator": end}
    as_csv(safe).to_csv(path, **options)
    assert passes(path, lon="lon", lat="lat")
    as_csv(safe, **{more: "secret"}).to_csv(path, **options)
    assert f"'{more}'" in failing(path, "no other columns", lon="lon", lat="lat")


@pytest.mark.parametrize(("name", "column"), [(None, "__index_level_0__"), ("row", "row")])
def test_the_index_of_a_parquet_fails_as_a_column(tmp_path, safe, name, column):
    path = tmp_path / "safe.parquet"
    index = pd.Index([f"secret{i}" for i in range(len(safe))], name=name)
    safe.set_axis(index, axis="index").to_parquet(path)
    assert f"'{column}'" in failing(path, "no other columns")


def test_numbers_of_rows_in_parquet_are_looked_at(tmp_path, safe):
    path = tmp_path / "safe.parquet"
    safe.set_axis(pd.RangeIndex(5, 5 + len(safe)), axis="index").to_parquet(path)
    assert "that is not the number of the row" in looked_at(path)


def with_height(safe):
    x, y = safe.geometry.x, safe.geometry.y
    return safe.set_geometry(shapely.points(x, y, np.r_[7.0, np.zeros(len(safe) - 1)]), crs=safe.crs)


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "geojson"])
def test_elevations_of_a_file_fail(tmp_path, safe, ending):
    path = tmp_path / f"safe.{ending}"
    high = with_height(safe)
    high.to_parquet(path) if ending == "parquet" else high.to_file(path)
    assert "'Z or M'" in failing(path, "no other columns")


def test_measures_of_a_parquet_fail(tmp_path, safe):
    path = written(tmp_path, safe, "parquet")
    table = pq.read_table(path)
    point = np.frombuffer(table["geometry"][0].as_py(), "<f8", 2, 5)
    measured = b"\x01" + (2001).to_bytes(4, "little") + np.array([*point, 7.0]).tobytes()
    table = table.set_column(2, table.schema.field("geometry"), pa.array([measured] * len(table), pa.binary()))
    pq.write_table(table, path)
    assert "'Z or M'" in failing(path, "no other columns")


# GeoPackage


def changed(folder, safe, *statements):
    folder.mkdir(exist_ok=True)
    path = written(folder, safe, "gpkg", mechanism=pg.Promesse(200))
    with closing(sqlite3.connect(path)) as file, file:
        for name, kind in file.execute("SELECT name, type FROM sqlite_master WHERE type = 'trigger'").fetchall():
            file.execute(f"DROP {kind} {name}")  # they need functions of GDAL
        for statement in statements:
            file.execute(statement)
    return path


def vacuum(path):
    with closing(sqlite3.connect(path)) as file:
        file.execute("VACUUM")


@pytest.mark.parametrize("kind", ["TABLE people (name TEXT)", "VIEW people AS SELECT * FROM traces"])
def test_other_tables_of_a_geopackage_fail(tmp_path, safe, kind):
    assert "'people'" in failing(changed(tmp_path, safe, f"CREATE {kind}"))


def test_other_layers_of_a_geopackage_fail(tmp_path, safe):
    path = written(tmp_path, safe, "gpkg")
    safe.to_file(path, layer="homes")
    assert "2 layers" in failing(path)
    path = tmp_path / "notes.gpkg"
    pg.write(safe, path)
    pyogrio.write_dataframe(pd.DataFrame({"note": ["secret"]}), path, layer="notes")
    assert "'notes'" in failing(path)


def test_numbers_of_rows_that_do_not_count_from_1_fail(tmp_path, safe):
    assert "numbers of rows" in failing(changed(tmp_path, safe, "UPDATE traces SET fid = fid + 5000"))


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE gpkg_contents SET description = 'secret'", "a title, a description or"),
        ("UPDATE gpkg_contents SET identifier = 'secret'", "a title, a description or"),
        ("UPDATE gpkg_metadata SET metadata = 'secret'", "in another form"),
        ("UPDATE gpkg_metadata SET metadata = replace(metadata, 'promesse_geo', 'author')", "'author'"),
        ("UPDATE gpkg_metadata SET metadata = replace(metadata, 'Metadata>', 'Metadata domain=\"d\">')", "metadata"),
        ("UPDATE gpkg_metadata SET metadata = replace(metadata, '200.0', '200.0, \"seed\": 1')", "more under"),
    ],
)
def test_notes_in_a_geopackage_are_looked_at(tmp_path, safe, statement, words):
    assert words in looked_at(changed(tmp_path, safe, statement))


def test_room_of_deleted_records_is_looked_at(tmp_path, safe):
    fill = "INSERT INTO gpkg_ogr_contents SELECT 'secret' || fid || '-{}', fid FROM traces"
    statements = [fill.format(i) for i in range(50)]
    path = changed(tmp_path, safe, *statements, "DELETE FROM gpkg_ogr_contents WHERE table_name LIKE 'secret%'")
    assert "room of deleted records" in looked_at(path)


def in_place(folder, safe, *statements):
    """A GeoPackage of long names that was changed without clearing what is freed."""
    safe = safe.assign(user="secret name number one")
    return changed(folder, safe, "PRAGMA secure_delete = off", *statements)


def test_names_that_were_changed_in_place_and_still_stand_there_fail(tmp_path, safe):
    path = in_place(tmp_path, safe, "UPDATE traces SET user = '0123456789abcdef'")
    assert b"secret name" in path.read_bytes()
    assert "what was deleted or changed" in failing(path)
    vacuum(path)
    assert b"secret name" not in path.read_bytes()
    assert rows(path).loc["nothing else in the file", "verdict"] == "passed"


def test_records_that_were_deleted_and_still_stand_there_fail(tmp_path, safe):
    path = in_place(tmp_path, pd.concat([safe] * 10), "DELETE FROM traces WHERE fid > 5")
    assert b"secret name" in path.read_bytes()
    assert "what was deleted or changed" in failing(path)


def test_an_extent_of_other_records_is_looked_at(tmp_path, safe):
    path = changed(tmp_path, safe, "UPDATE gpkg_contents SET min_x = min_x - 0.01")
    assert "an extent that is not that of the records" in looked_at(path)


@pytest.mark.parametrize("kept", [slice(None), slice(1, None)], ids=["all nodes", "leaves"])
def test_an_index_of_other_places_fails(tmp_path, safe, kept):
    read, write = "SELECT data, nodeno FROM {}", "UPDATE {} SET data = ? WHERE nodeno = ?"
    nodes = "rtree_traces_geometry_node"
    with closing(sqlite3.connect(written(tmp_path, safe, "gpkg"))) as file:
        true = file.execute(read.format(nodes)).fetchall()
    path = tmp_path / "moved.gpkg"
    pg.write(safe.set_geometry(safe.geometry.translate(0.01)), path)
    assert passes(path)
    with closing(sqlite3.connect(path)) as file, file:
        file.executemany(write.format(nodes), true[kept])
    assert "an index of other places" in failing(path)


def test_bytes_behind_the_boxes_of_an_index_fail(tmp_path, safe):
    path = written(tmp_path, safe.iloc[:5], "gpkg")
    with closing(sqlite3.connect(path)) as file, file:
        (data,) = file.execute("SELECT data FROM rtree_traces_geometry_node").fetchone()
        file.execute("UPDATE rtree_traces_geometry_node SET data = ?", [data[:-6] + b"secret"])
    assert "an index of other places" in failing(path)


@pytest.mark.parametrize("way", ["424242", "'1secret'", "nodeno || 'secret'"])
def test_an_index_that_leads_elsewhere_fails(tmp_path, safe, way):
    path = changed(tmp_path, safe, f"UPDATE rtree_traces_geometry_rowid SET nodeno = {way} WHERE rowid = 3")
    vacuum(path)
    assert "an index of other places" in failing(path)


def test_bytes_behind_a_point_fail(tmp_path, safe):
    path = changed(tmp_path, safe, "UPDATE traces SET geometry = CAST(geometry || 'secret' AS BLOB) WHERE fid = 3")
    assert "1 geometry with more bytes than a point has" in failing(path)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("INSERT INTO gpkg_ogr_contents VALUES ('secret', 3)", "'gpkg_ogr_contents'"),
        ("UPDATE gpkg_ogr_contents SET feature_count = 424242", "'gpkg_ogr_contents'"),
        ("INSERT INTO sqlite_sequence VALUES ('secret', 3)", "'sqlite_sequence'"),
        ("UPDATE sqlite_sequence SET seq = 424242", "'sqlite_sequence'"),
        ("UPDATE gpkg_spatial_ref_sys SET description = 'secret' WHERE srs_id = 0", "'gpkg_spatial_ref_sys'"),
        ("UPDATE gpkg_spatial_ref_sys SET srs_name = 'secret' WHERE srs_id = 4326", "'gpkg_spatial_ref_sys'"),
        ("INSERT INTO gpkg_spatial_ref_sys VALUES ('secret', 9, 'secret', 9, 'secret', NULL)", "gpkg_spatial_ref_sys"),
        ("INSERT INTO gpkg_extensions VALUES ('traces', 'user', 'secret', 'secret', 'read-write')", "gpkg_extensions"),
        ("INSERT INTO gpkg_extensions VALUES (NULL, NULL, 'secret', 'secret', 'read-write')", "'gpkg_extensions'"),
        ("UPDATE gpkg_extensions SET definition = 'secret'", "'gpkg_extensions'"),
        ("UPDATE gpkg_extensions SET rowid = rowid + 424242", "'gpkg_extensions'"),
        ("UPDATE gpkg_contents SET last_change = '2024-05-06T07:08:09.123Z'", "'gpkg_contents'"),
        ("UPDATE gpkg_contents SET last_change = 'secret'", "'gpkg_contents'"),
        ("UPDATE gpkg_metadata SET md_standard_uri = 'secret'", "'gpkg_metadata'"),
        ("UPDATE gpkg_metadata SET mime_type = 'secret'", "'gpkg_metadata'"),
        ("UPDATE gpkg_metadata SET metadata = metadata || '<!-- secret -->'", "'gpkg_metadata'"),
        (
            "UPDATE gpkg_metadata SET metadata = replace(metadata, '<MDI ', "
            "'<MDI key=\"promesse_geo\">secret</MDI><MDI ')",
            "'gpkg_metadata'",
        ),
        ("UPDATE gpkg_metadata SET metadata = replace(metadata, '<MDI ', '<MDI by=\"secret\" ')", "'gpkg_metadata'"),
        ("UPDATE gpkg_metadata SET metadata = replace(metadata, '</MDI>', '</MDI>secret')", "'gpkg_metadata'"),
        ("UPDATE gpkg_metadata_reference SET column_name = 'secret'", "'gpkg_metadata_reference'"),
        ("UPDATE gpkg_metadata_reference SET row_id_value = 424242", "'gpkg_metadata_reference'"),
        ("UPDATE gpkg_metadata_reference SET timestamp = 'secret'", "'gpkg_metadata_reference'"),
        ("INSERT INTO gpkg_tile_matrix_set VALUES ('secret', 4326, 1, 2, 3, 4)", "'gpkg_tile_matrix_set'"),
        ("PRAGMA user_version = 424242", "numbers in the header"),
        ("PRAGMA application_id = 424242", "numbers in the header"),
        ("CREATE INDEX one /* secret */ ON traces (user)", "definitions"),
        ("CREATE INDEX one ON traces (user) WHERE user != 'secret'", "definitions"),
        ("CREATE INDEX secret ON traces (user)", "definitions"),
        ("CREATE TRIGGER one AFTER UPDATE OF user ON traces WHEN 0 BEGIN SELECT 'secret'; END", "definitions"),
        ("ALTER TABLE gpkg_tile_matrix ADD COLUMN secret", "definitions"),
    ],
)
def test_what_gdal_would_not_write_for_the_layer_is_looked_at(tmp_path, safe, statement, words):
    path = changed(tmp_path, safe, statement)
    assert words in looked_at(path)
    vacuum(path)
    assert words in looked_at(path)


@pytest.mark.parametrize("clause", ["DEFAULT 'secret'", "CHECK (user != 'secret')"])
def test_clauses_in_the_definition_of_the_layer_are_looked_at(tmp_path, safe, clause):
    path = changed(
        tmp_path,
        safe,
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_master SET sql = replace(sql, 'TEXT', 'TEXT {clause.replace(chr(39), chr(39) * 2)}') "
        "WHERE name = 'traces'",
    )
    vacuum(path)
    assert "definitions" in looked_at(path)


def test_what_gdal_of_other_versions_writes_passes(tmp_path, safe):
    """Before 3.12, other triggers kept the index; and 3.8 wrote its definition with quotes."""
    path = changed(
        tmp_path,
        safe,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, '(id, minx, maxx, miny, maxy)', "
        """'("id", "minx", "maxx", "miny", "maxy")') WHERE name = 'rtree_traces_geometry'""",
        """CREATE TRIGGER "rtree_traces_geometry_update1" AFTER UPDATE OF "geometry" ON "traces" WHEN OLD."fid" = """
        """NEW."fid" AND (NEW."geometry" NOTNULL AND NOT ST_IsEmpty(NEW."geometry")) BEGIN INSERT OR REPLACE INTO """
        """"rtree_traces_geometry" VALUES (NEW."fid",ST_MinX(NEW."geometry"), ST_MaxX(NEW."geometry"),"""
        """ST_MinY(NEW."geometry"), ST_MaxY(NEW."geometry")); END""",
        """CREATE TRIGGER "rtree_traces_geometry_update3" AFTER UPDATE ON "traces" WHEN OLD."fid" != NEW."fid" AND """
        """(NEW."geometry" NOTNULL AND NOT ST_IsEmpty(NEW."geometry")) BEGIN DELETE FROM "rtree_traces_geometry" """
        """WHERE id = OLD."fid"; INSERT OR REPLACE INTO "rtree_traces_geometry" VALUES (NEW."fid","""
        """ST_MinX(NEW."geometry"), ST_MaxX(NEW."geometry"),ST_MinY(NEW."geometry"), ST_MaxY(NEW."geometry")); END""",
    )
    vacuum(path)
    assert passes(path)


def test_crs_that_need_more_of_a_geopackage_pass(tmp_path, safe):
    rotated = "+proj=ob_tran +o_proj=longlat +o_lon_p=0 +o_lat_p=45 +lon_0=4 +to_meter=0.0174532925199433"
    assert passes(written(tmp_path, safe.to_crs(rotated), "gpkg", mechanism=pg.Promesse(200)))


@pytest.mark.parametrize("place", [4, 8, 9])
def test_geometries_that_say_more_than_a_place_fail(tmp_path, safe, place):
    """In the number of a CRS, the order of the bytes, or the kind of geometry."""
    path = changed(tmp_path, safe)
    with closing(sqlite3.connect(path)) as file, file:
        points = file.execute("SELECT geometry, fid FROM traces").fetchall()
        turned = (
            (lambda point: point[:9] + point[9:13][::-1] + point[13:21][::-1] + point[21:][::-1])
            if place == 8
            else bytes
        )
        odd = [
            (b"".join((turned(p)[:place], bytes([p[place] ^ 1]), turned(p)[place + 1 :])), n) for p, n in points[::2]
        ]
        file.executemany("UPDATE traces SET geometry = ? WHERE fid = ?", odd)
    assert (
        "geometries written otherwise than GDAL writes a point" in rows(path).loc["nothing else in the file", "reason"]
    )


@pytest.mark.parametrize("count", [50, 4096])
def test_bytes_behind_the_last_page_fail(tmp_path, safe, count):
    path = written(tmp_path, safe, "gpkg")
    path.write_bytes(path.read_bytes() + b"secret".ljust(count, b"!"))
    assert f"{count:,} bytes behind the last page" in failing(path)


def test_bytes_in_the_empty_part_of_the_header_fail_and_a_cut_file_is_damaged(tmp_path, safe):
    path = written(tmp_path, safe, "gpkg")
    content = path.read_bytes()
    path.write_bytes(content[:72] + b"secret" + content[78:])
    assert "bytes in the part of the header" in failing(path)
    path.write_bytes(content[:-4096])
    with pytest.raises(ValueError, match="cannot be looked into: it is"):
        file_findings(path)


@pytest.mark.parametrize("mechanism", [None, pg.Promesse(200)])
@pytest.mark.parametrize("times", [1, 20, 400])
def test_a_geopackage_passes_after_vacuum(tmp_path, safe, mechanism, times):
    path = written(tmp_path, pd.concat([safe] * times), "gpkg", mechanism=mechanism)
    for _ in range(3):
        vacuum(path)
        assert passes(path)


def test_what_stands_behind_a_nul_fails_and_behind_a_time_is_looked_at(tmp_path, safe):
    path = changed(tmp_path, safe, "UPDATE traces SET user = user || char(0) || 'secret'")
    vacuum(path)
    assert "a NUL" in failing(path)
    for number, more in enumerate(["000000424242", "+00:00:00.424242", "[secret]"]):
        path = changed(tmp_path / str(number), safe, f"UPDATE traces SET time = time || '{more}'")
        vacuum(path)
        assert "written otherwise than ISO 8601" in looked_at(path)


def test_a_geopackage_that_goes_in_circles_is_damaged(tmp_path, safe):
    path = written(tmp_path, pd.concat([safe] * 5), "gpkg")
    with closing(sqlite3.connect(path)) as file:
        (root,) = file.execute("SELECT rootpage FROM sqlite_master WHERE name = 'traces'").fetchone()
        size = file.execute("PRAGMA page_size").fetchone()[0]
    content = bytearray(path.read_bytes())
    start = (root - 1) * size
    assert content[start] == 5
    content[start + 8 : start + 12] = root.to_bytes(4, "big")
    path.write_bytes(content)
    with pytest.raises(ValueError, match="cannot be looked into"):
        file_findings(path)


# GeoJSON


def rewritten(folder, safe, change):
    path = written(folder, safe, "geojson")
    collection = json.loads(path.read_text())
    change(collection)
    path.write_text(json.dumps(collection))
    return path


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(people=["secret"]), "'people'"),
        (lambda c: c["features"][3].update(owner="secret"), "'owner'"),
        (lambda c: c["features"][3].update(bbox=[1, 2, 1, 2]), "'bbox'"),
        (lambda c: c["features"][3]["geometry"].update(near="secret"), "'near'"),
        (lambda c: c["features"][3].update(id="secret"), "identifiers"),
        (lambda c: [feature.update(id=i + 7) for i, feature in enumerate(c["features"])], "identifiers"),
    ],
)
def test_members_that_geojson_does_not_know_and_identifiers_fail(tmp_path, safe, change, words):
    assert words in failing(rewritten(tmp_path, safe, change))


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("kind", [str, int])
def test_numbers_of_features_say_nothing(tmp_path, safe, first, kind):
    def change(collection):
        for number, feature in enumerate(collection["features"], first):
            feature["id"] = kind(number)

    path = rewritten(tmp_path, safe, change)
    assert rows(path).loc["nothing else in the file", "verdict"] == "passed"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(name="secret"), "a name of its own"),
        (lambda c: c.update(bbox=[1, 2, 3, 4]), "a bounding box"),
        (lambda c: c["crs"].update(note="secret"), "a CRS with remarks"),
        (lambda c: c["crs"]["properties"].update(note="secret"), "a CRS with remarks"),
        (lambda c: c.update(xy_coordinate_resolution="secret"), "a resolution"),
        (lambda c: c.update(xy_coordinate_resolution=4.83571), "a resolution"),
        (lambda c: c["crs"]["properties"].update(name="urn:ogc:def:crs:EPSG:42.1984:4326"), "a CRS with remarks"),
        (lambda c: c["crs"]["properties"].update(name="urn:ogc:def:crs:OGC:4.83571:CRS84"), "a CRS with remarks"),
        (lambda c: c["features"][3]["properties"].update(time="2000-01-03T07:06:17.113000000424242"), "1 time written"),
    ],
)
def test_notes_in_geojson_are_looked_at(tmp_path, safe, change, words):
    assert words in looked_at(rewritten(tmp_path, safe, change))


def test_a_property_of_one_feature_alone_and_a_member_twice_fail(tmp_path, safe):
    path = rewritten(tmp_path, safe, lambda c: c["features"][-1]["properties"].update(phone="secret"))
    assert "'phone'" in failing(path, "no other columns")
    path = written(tmp_path, safe, "geojson", force=True)
    path.write_text(
        path.read_text().replace('"properties": {', '"properties": {"phone": "secret"}, "properties": {', 1)
    )
    assert "'properties' twice" in failing(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f.update(type="secret"),
        lambda f: f["geometry"].update(type="secret"),
        lambda f: f["geometry"].update(coordinates=["secret", "secret"]),
        lambda f: f["geometry"].update(coordinates={"secret": 1}),
        lambda f: f["properties"].update(user={"secret": "secret"}),
        lambda f: f["properties"].update(user=["secret"]),
    ],
)
def test_features_of_another_kind_fail(tmp_path, safe, change):
    path = rewritten(tmp_path, safe, lambda c: change(c["features"][3]))
    assert "1 feature of another kind" in failing(path)


def test_a_nul_in_a_property_fails(tmp_path, safe):
    def change(collection):
        for feature in collection["features"]:
            feature["properties"]["user"] += "\0secret"

    assert "a NUL" in failing(rewritten(tmp_path, safe, change))


@pytest.mark.parametrize("more", ["0" * 20 + "424242", "0" * 24, "e-0000000000000000000"])
def test_numbers_with_more_digits_than_are_read_are_looked_at(tmp_path, safe, more):
    for ending in ("geojson", "csv"):
        path = written(tmp_path, safe, ending)
        text = path.read_text()
        number = re.search(r"\d\.\d{10,}", text)[0]
        path.write_text(text.replace(number, number + more, 1))
        assert pg.read_file(path).records == len(safe)
        assert "1 number written with more than a number of 64 bits keeps" in looked_at(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.assign(lon=" " + frame["lon"].map(str)), "numbers written"),
        (lambda frame: frame.assign(lat=frame["lat"].map(str) + "  "), "numbers written"),
        (lambda frame: frame.assign(lon="+" + frame["lon"].map(str)), "numbers written"),
        (lambda frame: frame.assign(time=frame["time"].map(str) + "000000"), "times written otherwise than ISO 8601"),
    ],
)
def test_values_of_a_csv_with_more_around_them_are_looked_at(tmp_path, safe, change, words):
    path = tmp_path / "safe.csv"
    change(as_csv(safe)).to_csv(path, index=False)
    assert words in looked_at(path)


@pytest.mark.parametrize("number", [0.1, -1.2345678901234567e-300, 5e-324, 1e22, -0.00012345678901234567, 0.0, 179.999])
def test_any_number_as_python_writes_it_is_plain(number):
    assert is_plain_number(repr(number))
    assert is_plain_number(f"{number:.17g}")
    assert not is_plain_number(f"{number:.17g} ")


def test_a_nul_far_down_in_a_csv_fails(tmp_path, safe):
    path = tmp_path / "safe.csv"
    frame = pd.concat([as_csv(safe)] * 20)
    frame.iloc[-1, 0] += "\0secret"
    frame.to_csv(path, index=False)
    assert path.stat().st_size > 1 << 16
    assert "a NUL" in failing(path)


# Parquet


def noted(folder, safe, change, *, ours=True):
    """A Parquet file whose metadata are changed as dicts."""
    folder.mkdir(exist_ok=True)
    path = written(folder, safe, "parquet", mechanism=pg.Promesse(200))
    if not ours:
        safe.to_parquet(path)
    table = pq.read_table(path)
    metadata = {key.decode(): json.loads(value) for key, value in table.schema.metadata.items()}
    metadata["geo"]["columns"]["geometry"].pop("bbox", None)
    change(metadata)
    pq.write_table(table.replace_schema_metadata({key: json.dumps(value) for key, value in metadata.items()}), path)
    return path


def test_what_geopandas_writes_as_parquet_passes_but_for_its_bounds(tmp_path, safe):
    path = noted(tmp_path, safe, lambda m: None, ours=False)
    assert passes(path)
    safe.to_parquet(path)
    assert "'bbox' under 'geo'" in looked_at(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m["geo"].update(author="secret"), "'author' under 'geo'"),
        (lambda m: m["geo"]["columns"]["geometry"].update(note="secret"), "'note' under 'geo'"),
        (lambda m: m["geo"]["columns"].update(home={"note": "secret"}), "another column under 'geo'"),
        (lambda m: m["geo"]["columns"]["geometry"]["crs"].update(remarks="secret"), "remarks in the CRS"),
        (lambda m: m["geo"]["columns"]["geometry"]["crs"].update(note="secret"), "remarks in the CRS"),
        (lambda m: m["pandas"].update(author="secret"), "'author' under 'pandas'"),
        (lambda m: m["pandas"].update(attributes={"author": "secret"}), "attributes of the frame"),
        (lambda m: m["pandas"]["index_columns"][0].update(name="secret"), "an index under 'pandas'"),
        (lambda m: m["pandas"]["index_columns"][0].update(stop=10**6), "an index under 'pandas'"),
        (lambda m: m["pandas"]["column_indexes"][0].update(name="secret"), "a name for the row"),
        (lambda m: m["pandas"]["columns"][0].update(metadata={"note": "secret"}), "'note' under 'pandas'"),
        (lambda m: m["pandas"]["columns"].append({"name": "secret"}), "another column under 'pandas'"),
        (lambda m: m.update(pandas=["secret"]), "in another form"),
        (lambda m: m["pandas"].update(columns=["secret"]), "in another form"),
        (
            lambda m: m.update(promesse_geo={"mechanism": "Promesse", "parameters": {"epsilon": 200}, "by": "secret"}),
            "more",
        ),
        (lambda m: m.update(promesse_geo={"mechanism": "secret"}), "more under 'promesse_geo'"),
        (lambda m: m.update(author="secret"), "'author'"),
        (lambda m: m["geo"].update(creator={"library": "secret"}), "'library' under 'geo'"),
        (lambda m: m["geo"].update(creator={"version": "4.83571"}), "'version' under 'geo'"),
        (lambda m: m["geo"].update(version="secret"), "'version' under 'geo'"),
        (lambda m: m["geo"]["columns"]["geometry"].update(geometry_types=["Point", "secret"]), "'geometry_types'"),
        (lambda m: m["geo"]["columns"]["geometry"].update(edges="secret"), "'edges'"),
        (lambda m: m["geo"]["columns"]["geometry"].update(orientation="secret"), "'orientation'"),
        (lambda m: m["geo"]["columns"]["geometry"].update(epoch=2024.4242), "'epoch'"),
        (lambda m: m["geo"]["columns"]["geometry"]["crs"].update({"$schema": "secret"}), "remarks in the CRS"),
        (lambda m: m["geo"]["columns"]["geometry"].update(crs="secret"), "in another form"),
        (lambda m: m["pandas"].update(creator={"library": "secret"}), "'library' under 'pandas'"),
        (lambda m: m["pandas"].update(pandas_version="secret"), "'pandas_version'"),
        (lambda m: m["pandas"]["columns"][0].update(field_name="secret"), "another column under 'pandas'"),
        (lambda m: m["pandas"]["columns"][0].update(pandas_type="secret"), "'pandas_type'"),
        (lambda m: m["pandas"]["columns"][0].update(numpy_type="secret"), "'numpy_type'"),
        (lambda m: m["pandas"]["columns"][1].update(metadata={"timezone": "secret"}), "another time zone"),
        (lambda m: m["pandas"]["columns"][0].update(metadata={"num_categories": 424242}), "number of categories"),
        (lambda m: m["pandas"]["column_indexes"][0].update(field_name="secret"), "a name for the row"),
        (lambda m: m["pandas"]["column_indexes"][0].update(metadata={"encoding": "secret"}), "'encoding'"),
    ],
)
def test_notes_in_parquet_are_looked_at(tmp_path, safe, change, words):
    assert words in looked_at(noted(tmp_path, safe, change, ours=False))


@pytest.mark.parametrize(
    ("key", "twice", "words"),
    [
        (b"geo", b'{"version": "secret", ', "'version' twice"),
        (b"pandas", b'{"creator": "secret", ', "'creator' twice"),
        (b"promesse_geo", b'{"mechanism": "secret", ', "more under 'promesse_geo'"),
    ],
)
def test_keys_that_stand_twice_in_metadata_are_looked_at(tmp_path, safe, key, twice, words):
    path = written(tmp_path, safe, "parquet", mechanism=pg.Promesse(200))
    about = pq.read_schema(path).metadata
    noted(tmp_path / "pandas", safe, lambda m: None, ours=False)
    about = about | {b"pandas": pq.read_schema(tmp_path / "pandas" / "safe.parquet").metadata[b"pandas"]}
    pq.write_table(pq.read_table(path).replace_schema_metadata(about), path)
    assert passes(path)
    about[key] = about[key].replace(b"{", twice, 1)
    pq.write_table(pq.read_table(path).replace_schema_metadata(about), path)
    assert words in looked_at(path)


def test_another_program_and_other_bounds_in_the_footer_are_looked_at(tmp_path, safe):
    path = written(tmp_path, safe, "parquet")
    content = path.read_bytes()
    maker = pq.read_metadata(path).created_by.encode()
    path.write_bytes(content.replace(maker, b"secret".ljust(len(maker))))
    assert "the name of a program in the footer" in looked_at(path)
    least = safe["user"].min().encode()
    before, _, after = content.rpartition(least)
    path.write_bytes(before + b"secret".ljust(len(least), b"!") + after)
    assert "bounds of values that are not those of the records" in looked_at(path)


def test_other_bytes_of_the_schema_of_arrow_are_looked_at(tmp_path, safe):
    path = written(tmp_path, safe, "parquet")
    schema = pq.read_metadata(path).metadata[b"ARROW:schema"]
    content = base64.b64decode(schema)
    padding = next(i for i in range(1, len(content)) if content[i - 1 : i + 3] == b"y\0\0\0")
    changed = base64.b64encode(content[: padding + 1] + b"!" + content[padding + 2 :])
    path.write_bytes(path.read_bytes().replace(schema, changed))
    assert "other metadata in 'ARROW:schema'" in looked_at(path)


@pytest.mark.parametrize("kind", ["category", "string", "string[pyarrow]", "object"])
@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
def test_what_geopandas_says_about_any_kind_of_column_passes(tmp_path, safe, kind, zone):
    frame = safe.assign(user=safe["user"].astype(kind), time=safe["time"].dt.tz_localize(zone))
    assert passes(noted(tmp_path, frame, lambda m: None, ours=False))
    assert passes(noted(tmp_path / "number", frame.assign(user=7), lambda m: None, ours=False))


def test_a_seed_in_our_own_metadata_is_looked_at(tmp_path, safe):
    about = {"mechanism": "GeoIndistinguishability", "parameters": {"epsilon": 0.01, "grid": None, "seed": "secret"}}
    assert "more under 'promesse_geo'" in looked_at(noted(tmp_path, safe, lambda m: m.update(promesse_geo=about)))


def test_metadata_of_a_column_is_looked_at(tmp_path, safe):
    path = written(tmp_path, safe, "parquet")
    table = pq.read_table(path)
    pq.write_table(table.cast(table.schema.set(0, table.schema.field(0).with_metadata({"note": "secret"}))), path)
    assert "'note' under a column's metadata" in looked_at(path)


@pytest.mark.parametrize("stored", [True, False])
def test_names_left_over_in_a_dictionary_fail(tmp_path, safe, stored):
    users = pd.Categorical(safe["user"], categories=[*safe["user"].unique(), "secret1", "secret2"])
    path = tmp_path / "safe.parquet"
    safe.assign(user=users).to_parquet(path, store_schema=stored)
    assert b"secret1" in path.read_bytes()
    assert "2 values in a dictionary" in failing(path, crs=None if stored else 4326)
    safe.assign(user=users.remove_unused_categories()).to_parquet(path, row_group_size=100)
    assert rows(path).loc["nothing else in the file", "verdict"] == "passed"


def with_points(folder, safe, change):
    """A Parquet file whose geometries are changed as bytes."""
    path = written(folder, safe, "parquet")
    table = pq.read_table(path)
    points = [change(point) for point in table["geometry"].to_pylist()]
    pq.write_table(table.set_column(2, table.schema.field("geometry"), pa.array(points, pa.binary())), path)
    return path


def test_bytes_behind_the_points_of_a_parquet_fail(tmp_path, safe):
    assert f"{6 * len(safe):,} bytes behind points" in failing(
        with_points(tmp_path, safe, lambda point: point + b"secret")
    )


def test_other_ways_to_write_a_point_pass(tmp_path, safe):
    def numbered(point):
        return shapely.to_wkb(shapely.set_srid(shapely.from_wkb(point), 4326), include_srid=True, byte_order=0)

    assert passes(with_points(tmp_path, safe, numbered))


def test_bytes_of_a_parquet_that_belong_to_no_column_fail(tmp_path, safe):
    path = written(tmp_path, safe, "parquet")
    content = path.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[:start] + b"secret" + content[start:])
    assert "6 bytes that belong to no column" in failing(path)


@pytest.mark.parametrize(
    "options",
    [
        {"write_page_index": True},
        {"use_dictionary": False, "compression": "none"},
        {"row_group_size": 10, "compression": "zstd"},
        {"data_page_version": "2.0", "write_page_checksum": True},
    ],
)
def test_parquet_passes_however_it_is_laid_out(tmp_path, safe, options):
    path = written(tmp_path, safe, "parquet")
    pq.write_table(pq.read_table(path), path, **options)
    assert passes(path)


# Folders, packed files, and other formats


def test_a_folder_is_looked_at_file_by_file(tmp_path, safe):
    folder = tmp_path / "out"
    folder.mkdir()
    for name, user in zip(("a", "b"), safe["user"].unique(), strict=False):
        pg.write(safe[safe["user"] == user], folder / f"{name}.parquet", mechanism=pg.Promesse(200))
    assert passes(folder)
    assert file_epsilon(folder) == 200
    (folder / ".notes").write_text("secret")
    assert "1 file that the reader passes over" in failing(folder)
    (folder / ".notes").unlink()
    safe.assign(phone="secret").to_parquet(folder / "c.parquet")
    assert "'phone'" in failing(folder, "no other columns")
    assert file_mechanism(folder) is None


def test_a_packed_csv_is_looked_at(tmp_path, safe):
    path = tmp_path / "safe.csv.gz"
    content = as_csv(safe).to_csv(index=False).encode()
    path.write_bytes(gzip.compress(content))
    assert passes(path)
    for name, verdict in (("safe.csv", "passed"), ("secret.csv", "look")):
        with path.open("wb") as raw, gzip.GzipFile(name, "wb", fileobj=raw) as file:
            file.write(content)
        assert rows(path).loc["metadata of the file", "verdict"] == verdict


SECRET = b"secret"
PACKERS = {
    "gzip": lambda content: gzip.compress(content, mtime=0),
    "bz2": bz2.compress,
    "zstd": lambda content: pa.compress(content, codec="zstd", asbytes=True),
}
BEHIND = {
    "gzip": [PACKERS["gzip"](b""), b"\0" * 20 + SECRET],
    "bz2": [PACKERS["bz2"](b""), SECRET],
    "zstd": [PACKERS["zstd"](b""), b"\x50\x2a\x4d\x18\x06\0\0\0secret"],
}


@pytest.mark.parametrize("size", [0, 1, 300, 100_000, 3_000_000])
@pytest.mark.parametrize("kind", list(PACKERS))
def test_what_follows_the_first_packed_piece_fails(tmp_path, kind, size):
    path = tmp_path / "safe.csv"
    text = b"user,time,lon,lat\n" + b"0123456789abcdef,2024-01-01T00:00:00Z,4.5,45\n" * (size // 45 + 1)
    path.write_bytes(PACKERS[kind](text))
    assert passes(path)
    for behind in BEHIND[kind]:
        path.write_bytes(PACKERS[kind](text) + behind)
        assert packed_things(path) == [f"more than one piece of {kind}: what follows the first may be anything"]
    path.write_bytes(PACKERS[kind](text) + PACKERS[kind](text[18:]))
    assert "more than one piece" in failing(path)


@pytest.mark.parametrize("size", [0, 1, 70_000, 200_000])
def test_zstd_of_any_kind_is_one_piece(tmp_path, size):
    """Frames that say their size or not, with blocks that are raw, repeated or packed."""
    rng = np.random.default_rng(size)
    for text in (rng.bytes(size), b"a" * size, bytes(rng.integers(48, 58, size, np.uint8))):
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as stream:
            stream.write(text)
        for packed in (sink.getvalue().to_pybytes(), PACKERS["zstd"](text)):
            (tmp_path / "a.csv").write_bytes(packed)
            assert packed_things(tmp_path / "a.csv") == []


def test_a_format_that_is_not_looked_into_is_no_pass(tmp_path):
    path = tmp_path / "walk.gpx"
    path.write_text('<gpx version="1.1"><trk><trkseg/></trk></gpx>')
    assert set(rows(path)["verdict"]) == {"not comparable"}
    assert file_mechanism(path) is None


@pytest.mark.parametrize(
    "content", [b"PAR1secret", b"SQLite format 3\0secret", b'{"secret": ', b'{"secret": 1}{"secret": 2}']
)
def test_a_damaged_file_is_told_without_its_content(tmp_path, content):
    path = tmp_path / "safe.parquet"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="cannot be looked into") as told:
        file_findings(path)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize("change", [{"remarks": "secret"}, {"name": "secret"}, {"scope": "secret", "area": "secret"}])
@pytest.mark.parametrize("crs", [4326, "+proj=laea +lat_0=45 +lon_0=4"])
def test_words_of_a_crs_are_looked_at_and_not_written(tmp_path, safe, crs, change):
    content = CRS(crs).to_json_dict() | change
    content.pop("id", None)
    frame = safe.to_crs(crs).set_crs(CRS.from_json_dict(content), allow_override=True)
    found = safe.promesse.check(frame).set_index("test").loc["no attributes"]
    assert found["verdict"] == "look"
    assert "secret" not in found["reason"]
    frame.to_parquet(tmp_path / "theirs.parquet")
    assert "remarks in the CRS" in rows(tmp_path / "theirs.parquet").loc["metadata of the file", "reason"]
    for ending in ("parquet", "gpkg"):
        path = written(tmp_path, frame, ending, force=True)
        assert b"secret" not in path.read_bytes()
        assert passes(path)
        assert pg.read_file(path).space.crs == frame.crs
