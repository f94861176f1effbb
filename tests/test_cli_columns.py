"""Names of columns on the command line: what they apply to, and what is said if there is no such column."""

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
    assert "Compression" in done("measure", own, safe, *NAMED).stdout
    result = run("check", own, safe, *NAMED)
    assert result.exit_code in (0, 3), result.stderr
    assert "passed" in result.stdout
    done("map", own, safe, tmp_path / "map.html", *NAMED)


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "csv", "geojson", "fgb"])
def test_names_are_passed_once_in_a_chain(own, tmp_path, ending):
    parts, safe = (tmp_path / f"{name}.{ending}" for name in ("parts", "safe"))
    done("prepare", own, parts, "--keep-users", *NAMED)
    done("smooth", parts, safe, "--epsilon", 100, "--keep-users")
    assert "Compression" in done("measure", parts, safe).stdout
    assert run("check", parts, safe).exit_code in (0, 3)
    done("pois", safe, tmp_path / "pois.csv")
    assert "2 traces" in done("pseudonymize", safe, tmp_path / f"published.{ending}").stdout
    names = ["Teilnehmer", "Uhr"] if ending in ("parquet", "gpkg", "fgb") else ["user", "time"]
    assert list(pg.read_file(tmp_path / f"published.{ending}").columns)[:2] == names


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "fgb"])
def test_one_trace_is_said_once(tmp_path, ending):
    raw = table(tmp_path, "kind,time,lon,lat")
    done("smooth", raw, tmp_path / f"safe.{ending}", "--epsilon", 100, "--one-trace")
    assert "1 trace" in done("info", tmp_path / f"safe.{ending}").stderr
    assert "Compression" in done("measure", raw, tmp_path / f"safe.{ending}", "--one-trace").stdout


def test_a_name_may_be_that_of_protected_only(tmp_path):
    raw = table(tmp_path, "user,time,lon,lat")
    safe = table(tmp_path, "pseudonym,time,lon,lat", "safe.csv", minutes=range(20, 40))
    assert "Compression" in done("measure", raw, safe, "--user", "pseudonym").stdout


def test_names_that_no_file_has_are_an_error_with_the_columns_of_both(own, tmp_path):
    safe = table(tmp_path, "user,time,lon,lat", "safe.csv")
    wrong = ["--user", "Teilnemer", "--time", "Uhren", "--lon", "Ost", "--lat", "Nord"]
    said = failed("measure", own, safe, *wrong)
    assert "The user column 'Teilnemer' and the time column 'Uhren' do not exist" in said
    assert "'Teilnehmer', 'Uhr', 'Ost' and 'Nord'" in said
    assert "'user', 'time', 'lon' and 'lat'" in said
    assert "Did you mean --user Teilnehmer?" in said


def test_a_name_of_one_file_alone_is_the_error_if_the_other_has_no_such_role(tmp_path):
    raw, safe = table(tmp_path, "Wer,time,lon,lat"), table(tmp_path, "Kunde,time,lon,lat", "safe.csv")
    said = failed("measure", raw, safe, "--user", "Kunde")
    assert "in.csv" in said
    assert "user column 'Kunde' does not exist" in said


def test_all_columns_that_are_not_found_are_in_one_error(tmp_path):
    path = table(tmp_path, "user_name,own_time,lon,north")
    said = failed("info", path)
    assert "No user column, no time column and no lat column were found" in said
    assert "the columns are 'user_name', 'own_time', 'lon' and 'north'" in said
    assert "--user user_name, --time own_time and --lat …" in said


def test_a_column_that_is_not_there_and_one_that_is_not_found_are_in_one_error(tmp_path):
    said = failed("info", table(tmp_path, "user,when,lon,lat"), "--user", "usr")
    assert "The user column 'usr' does not exist. No time column was found" in said
    assert "Did you mean --user user?" in said


def test_the_name_of_a_folder_is_no_user_of_protected(tmp_path):
    for user in ("ann", "ben"):
        table(tmp_path / "raw" / user, "kind,time,lon,lat", "track.csv")
    done("smooth", tmp_path / "raw", tmp_path / "safe.csv", "--epsilon", 100, "--keep-users", "--user", "folder")
    found = pg.read_file(tmp_path / "safe.csv")
    assert sorted(set(found["user"])) == ["ann", "ben"]
    assert "Compression" in done("measure", tmp_path / "raw", tmp_path / "safe.csv", "--user", "folder").stdout
