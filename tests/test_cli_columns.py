"""Names of columns on the command line: what they apply to, and what is said if there is no such column."""

import re

import pandas as pd
import pytest
from tables import written
from test_cli import done, failed, run

import promesse_geo as pg

OWN = {"--user": "Teilnehmer", "--time": "Uhr", "--lon": "Ost", "--lat": "Nord"}
NAMED = [word for pair in OWN.items() for word in pair]


def table(folder, header, name="in.csv", *, minutes=range(10, 60)):
    """A walk to the east of two people, 78 m a minute."""
    lines = [
        f"{user},2024-03-04T08:{minute}:00Z,{4 + number + minute / 1000},45.7\n"
        for number, user in enumerate(("ann", "ben"))
        for minute in minutes
    ]
    return written(folder, "".join([f"{header}\n", *lines]), name)


@pytest.fixture
def own(tmp_path):
    """A table with names of its own."""
    return table(tmp_path, ",".join(OWN.values()))


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "csv", "geojson", "fgb"])
def test_a_name_counts_for_the_file_that_has_the_column(own, tmp_path, ending):
    safe = tmp_path / f"safe.{ending}"
    done("smooth", own, safe, "--epsilon", 100, "--keep-users", *NAMED)
    assert "compression" in done("measure", own, safe, *NAMED).stdout
    result = run("check", own, safe, *NAMED)
    assert result.exit_code in (0, 3), result.stderr
    assert "passed" in result.stdout
    done("map", own, safe, tmp_path / "map.html", *NAMED)


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "csv", "geojson", "fgb"])
def test_names_are_passed_once_in_a_chain(own, tmp_path, ending):
    parts, safe = (tmp_path / f"{name}.{ending}" for name in ("parts", "safe"))
    done("prepare", own, parts, "--keep-users", *NAMED)
    done("smooth", parts, safe, "--epsilon", 100, "--keep-users")
    assert "compression" in done("measure", parts, safe).stdout
    assert run("check", parts, safe).exit_code in (0, 3)
    done("pois", safe, tmp_path / "pois.csv")
    assert "2 traces" in done("pseudonymize", safe, tmp_path / f"published.{ending}").stdout
    names = ["Teilnehmer", "Uhr"] if ending in ("parquet", "gpkg", "fgb") else ["user", "time"]
    assert list(pg.read_file(tmp_path / f"published.{ending}").columns)[:2] == names


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "fgb"])
def test_one_trace_is_said_once(tmp_path, ending):
    raw = table(tmp_path, "kind,time,lon,lat")
    done("smooth", raw, tmp_path / f"safe.{ending}", "--epsilon", 2_000, "--one-trace")
    assert "1 trace" in done("info", tmp_path / f"safe.{ending}").stderr
    assert "compression" in done("measure", raw, tmp_path / f"safe.{ending}", "--one-trace").stdout


def test_a_name_may_be_that_of_protected_only(tmp_path):
    raw = table(tmp_path, "user,time,lon,lat")
    safe = table(tmp_path, "pseudonym,time,lon,lat", "safe.csv", minutes=range(20, 40))
    assert "compression" in done("measure", raw, safe, "--user", "pseudonym").stdout


def test_names_that_no_file_has_are_an_error_with_the_columns_of_both(own, tmp_path):
    safe = table(tmp_path, "user,time,lon,lat", "safe.csv")
    wrong = ["--user", "Teilnemer", "--time", "Uhren", "--lon", "Ost", "--lat", "Nord"]
    said = failed("measure", own, safe, *wrong)
    assert "The --user column 'Teilnemer' and the --time column 'Uhren' do not exist" in said
    assert "'Teilnehmer', 'Uhr', 'Ost' and 'Nord'" in said
    assert "'user', 'time', 'lon' and 'lat'" in said
    assert "Did you mean --user Teilnehmer?" in said


def test_a_name_of_one_file_alone_is_the_error_if_the_other_has_no_such_role(tmp_path):
    raw, safe = table(tmp_path, "Wer,time,lon,lat"), table(tmp_path, "Kunde,time,lon,lat", "safe.csv")
    said = failed("measure", raw, safe, "--user", "Kunde")
    assert "in.csv" in said
    assert "user column 'Kunde' does not exist" in said


def test_all_columns_that_are_not_found_are_in_one_error(tmp_path):
    path = table(tmp_path, "the_user,own_time,lon,north")
    said = failed("info", path)
    assert "No user column, no time column and no lat column were found" in said
    assert "the columns are 'the_user', 'own_time', 'lon' and 'north'" in said
    assert "--user the_user, --time own_time and --lat …" in said


def test_a_column_that_is_not_there_and_one_that_is_not_found_are_in_one_error(tmp_path):
    said = failed("info", table(tmp_path, "user,when,lon,lat"), "--user", "usr")
    assert "The --user column 'usr' does not exist. No time column was found" in said
    assert "Did you mean --user user?" in said


def test_the_name_of_a_folder_is_no_user_of_protected(tmp_path):
    for user in ("ann", "ben"):
        table(tmp_path / "raw" / user, "kind,time,lon,lat", "track.csv")
    done("smooth", tmp_path / "raw", tmp_path / "safe.csv", "--epsilon", 2_000, "--keep-users", "--user", "folder")
    found = pg.read_file(tmp_path / "safe.csv")
    assert sorted(set(found["user"])) == ["ann", "ben"]
    assert "compression" in done("measure", tmp_path / "raw", tmp_path / "safe.csv", "--user", "folder").stdout


def metres(path, name):
    """The same positions as x and y in metres, without a CRS."""
    frame = pg.read_file(path).to_crs(32631)
    table = frame.drop(columns="geometry").assign(x=frame.geometry.x, y=frame.geometry.y)
    table.to_csv(path.parent / name, index=False)
    return path.parent / name


@pytest.fixture
def planar(tmp_path):
    return metres(table(tmp_path, "user,time,lon,lat"), "planar.csv")


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "csv", "geojson", "fgb", "gpx"])
def test_a_crs_counts_for_the_file_that_needs_it(planar, tmp_path, ending):
    degrees, safe = tmp_path / "in.csv", tmp_path / f"safe.{ending}"
    done("smooth", degrees, safe, "--epsilon", 100, "--keep-users")
    words = ("--seed", 1, "--crs", "EPSG:32631")
    for raw, pair in (((degrees, safe), (planar, safe)), ((safe, degrees), (safe, planar))):
        assert done("measure", *pair, *words).stdout == done("measure", *raw, "--seed", 1).stdout


def test_a_crs_counts_for_both_files_that_need_it(planar, tmp_path):
    done("smooth", planar, tmp_path / "safe.csv", "--epsilon", 100, "--keep-users", "--crs", "EPSG:32631")
    assert '"x","y"' in (tmp_path / "safe.csv").read_text().splitlines()[0]
    assert "compression" in done("measure", planar, tmp_path / "safe.csv", "--crs", "EPSG:32631").stdout


def test_x_and_y_are_no_degrees_however_small(planar, tmp_path):
    near = pd.read_csv(planar)
    near["x"], near["y"] = (near["x"] - near["x"].min()) / 1000, (near["y"] - near["y"].min()) / 100
    near.to_csv(tmp_path / "near.csv", index=False)
    assert near[["x", "y"]].max().max() < 90
    pg.write(pg.read_file(tmp_path / "near.csv", crs=32631), tmp_path / "own.parquet")
    found = done("measure", tmp_path / "near.csv", tmp_path / "own.parquet", "--crs", "EPSG:32631").stdout
    assert "0.00 m  spatial error" in found


def test_a_crs_counts_for_columns_named_as_degrees_that_hold_none(planar, tmp_path):
    named = table(tmp_path, "", "named.csv")
    named.write_text(planar.read_text().replace("x,y", "lon,lat", 1))
    assert "compression" in done("measure", named, named, "--crs", "EPSG:32631").stdout
    pg.write(pg.read_file(planar, crs=32631), tmp_path / "own.parquet")
    found = done("measure", named, tmp_path / "own.parquet", "--crs", "EPSG:32631").stdout
    assert "compression" in found


def test_a_crs_that_neither_file_needs_is_an_error(tmp_path):
    frame = pg.read_file(table(tmp_path, "user,time,lon,lat"))
    for name in ("a.parquet", "b.gpkg"):
        pg.write(frame, tmp_path / name)
    said = failed("measure", tmp_path / "a.parquet", tmp_path / "b.gpkg", "--crs", "EPSG:32631")
    assert "--crs is the CRS of neither INPUT nor PROTECTED, which need none" in said
    done("measure", tmp_path / "a.parquet", tmp_path / "b.gpkg", "--crs", "EPSG:4326")
    assert "must be a coordinate reference system" in failed(
        "measure", tmp_path / "a.parquet", tmp_path / "b.gpkg", "--crs", "EPSG:0", code=2
    )


def test_in_a_folder_a_name_counts_for_each_file_that_has_the_column(tmp_path):
    folder = tmp_path / "raw"
    table(folder, "Fahrzeug,time,lon,lat,user", "a.csv")
    rows = (folder / "a.csv").read_text().splitlines()[1:]
    header = "Fahrzeug,time,lon,lat,user"
    (folder / "a.csv").write_text("\n".join([header, *(f"{row},nobody" for row in rows), ""]))
    (folder / "b.csv").write_text("\n".join(["user,time,lon,lat", *(f"c{row}" for row in rows), ""]))
    together = table(tmp_path, "user,time,lon,lat", "safe.csv")
    together.write_text("\n".join(["user,time,lon,lat", *rows, *(f"c{row}" for row in rows), ""]))
    said = failed("info", folder, "--user", "Fahrzeug")
    assert "b.csv" in said
    assert "user column 'Fahrzeug' does not exist" in said
    result = run("check", folder, together, "--user", "Fahrzeug")
    assert result.exit_code == 3  # nothing is protected
    assert "PROTECTED: 200 records of 4 traces" in result.stderr
    assert "4 of 4 lie within" in result.stdout
    assert "does not exist" in failed("check", folder, together, "--user", "Wagen")


def test_a_name_counts_for_tables_beside_tracks(own, tmp_path):
    tracks, safe = tmp_path / "raw.gpx", tmp_path / "safe.csv"
    pg.write(pg.read_file(own, user="Teilnehmer", time="Uhr", lon="Ost", lat="Nord"), tracks)
    done("smooth", tracks, safe, "--epsilon", 100, "--keep-users")
    safe.write_text(safe.read_text().replace("user", "Teilnehmer", 1))
    assert "compression" in done("measure", tracks, safe, "--user", "Teilnehmer").stdout
    assert "compression" in done("measure", safe, tracks, "--user", "Teilnehmer").stdout
    assert "'Kunde' does not exist" in failed("measure", tracks, safe, "--user", "Kunde")
    assert "must be one of" in failed("measure", tracks, tracks, "--user", "Kunde")


def test_each_track_is_a_user_of_tracks_only(tmp_path):
    tracks = tmp_path / "raw.gpx"
    pg.write(pg.read_file(table(tmp_path, "user,time,lon,lat")), tracks)
    tracks.write_text(tracks.read_text().replace('creator="promesse_geo"', 'creator="another"'))
    for ending in ("parquet", "gpx", "csv"):
        safe = tmp_path / f"safe.{ending}"
        done("smooth", tracks, safe, "--epsilon", 100, "--keep-users", "--user", "track")
        assert "compression" in done("measure", tracks, safe, "--user", "track").stdout


def test_options_of_text_count_for_protected_if_input_is_no_text(own, tmp_path):
    frame = pg.read_file(own, user="Teilnehmer", time="Uhr", lon="Ost", lat="Nord")
    pg.write(frame, tmp_path / "raw.gpx")
    german = tmp_path / "safe.csv"
    lines = [
        f"{user};{time:%d.%m.%Y %H:%M};{point.x:.9f};{point.y:.9f}".replace(".", ",").replace(",", ".", 2)
        for user, time, point in zip(frame["Teilnehmer"], frame["Uhr"], frame.geometry, strict=True)
    ]
    german.write_text("\n".join(["Benutzer;Zeit;Längengrad;Breitengrad", *lines, ""]), encoding="cp1252")
    words = ["--encoding", "cp1252", "--time-format", "%d.%m.%Y %H:%M", "--tz", "UTC"]
    assert "compression" in done("measure", tmp_path / "raw.gpx", german, *words).stdout
    assert "compression" in done("measure", german, tmp_path / "raw.gpx", *words).stdout


def test_info_says_if_each_file_is_a_user(tmp_path):
    city = pg.make_city(users=2, days=2, recorder="phone")
    for (user, day), track in city.groupby(["user", city["time"].dt.day]):
        (tmp_path / "raw" / user).mkdir(parents=True, exist_ok=True)
        pg.write(track.assign(user=f"{user}-{day}"), tmp_path / "raw" / user / f"{user}-{day}.gpx")
    by_file, by_folder = (done("info", tmp_path / "raw", *by) for by in ((), ("--user", "folder")))
    assert "4 traces, each file a user" in by_file.stderr
    assert "each file" not in by_folder.stderr
    rows, of_people = by_file.stdout, by_folder.stdout
    assert re.search(r"^traces +4\nusers +the files.*--user folder", rows, re.MULTILINE)
    assert re.search(r"^traces +2$", of_people, re.MULTILINE)
    pg.write(city, tmp_path / "city.csv")
    assert "the files" not in of_people + done("info", tmp_path / "city.csv").stdout
