"""The command line: results on stdout, the rest on stderr, exit codes, and never a traceback."""

import io
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from shapely import Point

import promesse_geo as pg
from promesse_geo.cli import layout
from promesse_geo.cli.commands import main

SAMPLES = Path(__file__).parents[1] / "data" / "sample"
ENDINGS = (".parquet", ".gpkg", ".csv", ".geojson")
every_ending = pytest.mark.parametrize("ending", ENDINGS)


def make_frame() -> gpd.GeoDataFrame:
    """Two people who walk east for 4 km, with a night in between, and one who stays where she is."""
    steps = np.arange(200)
    times = pd.Timestamp("2008-05-17 10:00:04", tz="UTC") + pd.to_timedelta(30 * steps + 36_000 * (steps >= 100), "s")
    walk = {"x": 500_000 + 20.0 * steps, "time": times}
    still = {"x": np.full(200, 500_000.0), "time": times}
    people = {"zaphod": walk, "ford": walk, "trillian": still}
    table = pd.concat([pd.DataFrame({"user": user} | columns) for user, columns in people.items()], ignore_index=True)
    table["time"] = table["time"].dt.as_unit("ms")
    points = gpd.points_from_xy(table.pop("x"), np.full(len(table), 5_000_000.0))
    return gpd.GeoDataFrame(table, geometry=points, crs="EPSG:32631").to_crs("EPSG:4326")


@pytest.fixture
def raw(tmp_path):
    """The path of a file with three people."""
    pg.write(make_frame(), tmp_path / "raw.parquet")
    return tmp_path / "raw.parquet"


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def done(*words):
    """Run what must work; return what it said."""
    result = run(*words)
    assert result.exit_code == 0, result.stderr
    assert "Error" not in result.stderr
    return result


def words(text: str) -> str:
    """Return text with single blanks."""
    return " ".join(text.split())


def failed(*words, code=1) -> str:
    """Run what must not work; return the one line that says why."""
    result = run(*words)
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1
    assert result.stderr.splitlines()[-1] == errors[0]
    return errors[0]


# Help.


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_option_of_a_command_is_explained(command):
    said = done(command, "--help").stdout
    assert said == done(command, "-h").stdout
    assert said.startswith(f"Usage: promesse-geo {command}") or said.startswith(f"Usage: main {command}")
    assert max(map(len, said.splitlines())) <= 100
    for option in re.findall(r"^  (-.*)$", said, re.MULTILINE):
        assert re.search(r"\S  +\S", option) or option.rstrip().endswith("]"), f"{option!r} has no explanation"


@pytest.mark.parametrize("command", ["", *sorted(main.commands)])
def test_help_fits_80_columns_and_breaks_no_word(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = done(*[command] * bool(command), "--help").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert not any(re.search(r"\w-$", line) for line in lines)
    assert not re.search(r"\b(FLOAT|INTEGER|TEXT|RANGE)\b", " ".join(lines)), "say what the value is"


def test_help_lists_options_of_the_command_before_those_of_reading():
    own, reading = done("publish", "--help").stdout.split("Options of reading INPUT:")
    assert "--recommended" in own
    assert "--help" in own
    assert "--separator" not in own
    assert "--separator" in reading


def test_the_first_help_shows_commands_exit_codes_and_how_to_compare():
    said = done("--help").stdout
    for words in ("smooth", "prepare", "info", "demo", "Exit status: 0 success; 1 error", "--keep-users"):
        assert words in said
    assert max(map(len, said.splitlines())) <= 100


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore")
def test_the_steps_of_the_first_help_protect_as_is_recommended(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pg.write(pg.make_city(users=5, days=3, seed=2, recorder="phone"), "raw.csv")
    steps = done("--help").stdout.partition("step by step")[2].partition("Exit status")[0]
    commands = re.findall(r"^ +promesse-geo (.*)$", steps.replace("\\\n", " "), re.MULTILINE)
    assert len(commands) > 5
    for command in commands:
        assert run(*command.split()).exit_code in (0, 3)
    published = pg.read_file("published.parquet")
    assert published.attrs["promesse"]["mechanism"] == pg.recommended("people").description()


def test_the_help_of_smooth_says_to_prepare_first():
    said = " ".join(done("smooth", "--help").stdout.split())
    assert "Prepare INPUT first unless its traces are short" in said
    assert "nothing is written" in said


def test_the_help_of_the_package_names_all_there_is():
    words = set(re.findall(r"`(\w+)`", pg.__doc__))
    assert set(pg.__all__) <= words
    assert dir(pg) == sorted(pg.__all__)


def test_help_shows_defaults():
    said = " ".join(done("prepare", "--help").stdout.split())
    assert "[default: 20; x>=1]" in said
    assert "[default: 4h]" in said
    said = " ".join(done("smooth", "--help").stdout.split())
    assert "[default: polyline]" in said
    assert "[required]" in said


def test_the_version_is_the_package_s():
    assert done("--version").stdout == f"promesse-geo, version {pg.__version__}\n"


# Success.


@every_ending
def test_every_format_goes_in(ending, tmp_path):
    source, output = tmp_path / f"raw{ending}", tmp_path / "safe.parquet"
    pg.write(make_frame(), source)
    result = done("smooth", source, output, "--epsilon", 200)
    assert result.stdout == f"{output}: 36 records of 2 traces\n"
    assert len(gpd.read_parquet(output)) == 36


@every_ending
def test_every_format_comes_out(ending, raw, tmp_path):
    output = tmp_path / f"safe{ending}"
    done("smooth", raw, output, "--epsilon", 200)
    safe = pg.read_table(output)
    assert (len(safe), safe["user"].nunique()) == (36, 2)
    assert safe["user"].astype(str).str.fullmatch("[0-9a-f]{16}").all()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted({"raw.parquet", output.name})


def test_an_archive_of_cabspotting_goes_in(tmp_path):
    with tarfile.open(tmp_path / "cabs.tar.gz", "w:gz") as archive:
        for cab in ("abboip", "udwadla"):
            lines = [f"{37.7 + 0.001 * step:.3f} -122.4 0 {1_211_018_404 + 60 * step}" for step in range(50)]
            content = ("\n".join(reversed(lines)) + "\n").encode()
            member = tarfile.TarInfo(f"cabspottingdata/new_{cab}.txt")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    done("smooth", tmp_path / "cabs.tar.gz", tmp_path / "safe.csv", "--epsilon", 200, "--keep-users")
    assert set(pg.read_table(tmp_path / "safe.csv")["user"]) == {"abboip", "udwadla"}
    assert "traces 2" in words(done("info", tmp_path / "cabs.tar.gz", "--format", "cabspotting").stdout)


def test_progress_and_warnings_are_on_stderr_and_one_line_each(raw, tmp_path):
    result = done("smooth", raw, tmp_path / "safe.parquet", "--epsilon", 200)
    assert len(result.stdout.splitlines()) == 1
    lines = result.stderr.splitlines()
    assert lines[:2] == ["reading INPUT …", "INPUT: 600 records of 3 traces"]
    assert lines[-1] == "writing OUTPUT …"
    assert [line for line in lines if line.startswith("Warning: 1 of 3 traces could not be protected")] == lines[2:-1]
    assert not re.search("zaphod|ford|trillian", result.output)


def test_smooth_does_what_the_package_does(raw, tmp_path):
    output = tmp_path / "safe.parquet"
    done("smooth", raw, output, "--epsilon", 150, "--variant", "pseudocode", "--min-points", 2, "--keep-users")
    with pytest.warns(UserWarning, match="could not be protected"):
        wanted = pg.Promesse(150, variant="pseudocode", min_points=2).protect(make_frame())
    found = gpd.read_parquet(output)
    assert found["user"].tolist() == wanted["user"].tolist()
    assert found["time"].tolist() == wanted["time"].tolist()
    assert found.geometry.geom_equals_exact(wanted.geometry, 1e-9).all()
    about = pq.read_schema(output).metadata[b"promesse_geo"].decode()
    assert '"parameters": {"epsilon": 150.0, "variant": "pseudocode", "min_points": 2}' in about


def test_new_names_are_others_each_time(raw, tmp_path):
    names = []
    for output in (tmp_path / "first.parquet", tmp_path / "second.parquet"):
        done("smooth", raw, output, "--epsilon", 200)
        names.append(set(gpd.read_parquet(output)["user"]))
    assert names[0].isdisjoint(names[1])


def test_prepare_names_parts_anew(raw, tmp_path):
    done("prepare", raw, tmp_path / "parts.parquet")
    parts = gpd.read_parquet(tmp_path / "parts.parquet")
    assert parts["user"].nunique() == 6
    assert parts["user"].str.fullmatch("[0-9a-f]{16}").all()
    assert str(parts["time"].min())[:10] == "2000-01-03"
    assert pq.read_schema(tmp_path / "parts.parquet").metadata[b"promesse_geo"] == b'{"mechanism": null}'


def test_prepare_keeps_users_with_the_number_of_the_part(raw, tmp_path):
    done("prepare", raw, tmp_path / "parts.csv", "--keep-users", "--tz", "Europe/Paris")
    wanted = {f"{user}-{part:05d}" for user in ("zaphod", "ford", "trillian") for part in range(2)}
    assert set(pg.read_table(tmp_path / "parts.csv")["user"]) == wanted


@pytest.mark.parametrize(
    ("gap", "parts"), [("12h", 3), ("4h", 6), ("36001", 6), ("40000", 3), ("1.5h", 6), ("29", 600)]
)
def test_a_gap_is_a_duration_or_a_number_of_seconds(gap, parts, raw, tmp_path):
    done("prepare", raw, tmp_path / "parts.parquet", "--gap", gap, "--tz", "UTC")
    assert gpd.read_parquet(tmp_path / "parts.parquet")["user"].nunique() == parts


def test_prepare_counts_days(raw, tmp_path):
    said = done("prepare", raw, tmp_path / "parts.parquet", "--days", 1, "--min-days", 1, "--tz", "Asia/Tokyo").stderr
    assert "Warning: first_days dropped" in said
    assert len(gpd.read_parquet(tmp_path / "parts.parquet")) < 600


def test_prepared_users_can_be_compared_with_the_protected_ones(raw, tmp_path):
    done("prepare", raw, tmp_path / "prepared.parquet", "--tz", "America/Los_Angeles")
    done("smooth", tmp_path / "prepared.parquet", tmp_path / "safe.parquet", "--epsilon", 200, "--keep-users")
    prepared, safe = (set(gpd.read_parquet(tmp_path / f"{name}.parquet")["user"]) for name in ("prepared", "safe"))
    assert len(prepared) == 6
    assert len(safe) == 4
    assert safe < prepared


def test_info_is_a_table(raw):
    rows = dict(re.split(r"  +", line, maxsplit=1) for line in done("info", raw).stdout.splitlines() if line)
    assert {"records", "traces", "period", "longitude", "latitude", "mean duration", "jumps", "gaps"} <= set(rows)
    assert (rows["records"], rows["traces"], rows["times"]) == ("600", "3", "UTC")
    seconds = 199 * 30 + 36_000
    assert rows["mean duration"] == rows["longest duration"] == f"{seconds / 3600:.3g} h"
    assert rows["sampling interval"] == f"{seconds / 199 / 60:.3g} min, median 30 s"
    assert rows["gaps"].startswith("3 ")
    assert (rows["distances"], rows["CRS"]) == ("on the sphere", "WGS 84")


def test_info_of_nothing_says_none(tmp_path):
    (tmp_path / "raw.csv").write_text("user,time,lon,lat\n", encoding="utf-8")
    said = done("info", tmp_path / "raw.csv").stdout
    assert words(said).startswith("records 0 traces 0 ")
    assert "mean duration none" in words(said)


def test_columns_can_be_named(tmp_path):
    (tmp_path / "raw.csv").write_text(
        "cab,stamp,x,y,uid\na,2008-05-17T10:00,0,0,1\na,2008-05-17T11:00,3000,0,2\n", encoding="utf-8"
    )
    options = (tmp_path / "raw.csv", "--user", "cab", "--time", "stamp", "--crs", "EPSG:32631", "--format", "table")
    done("smooth", *options[:1], tmp_path / "safe.csv", *options[1:], "--epsilon", 1000, "--keep-users")
    lines = (tmp_path / "safe.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == '"user","time","x","y"'  # a format without metadata has the standard names
    assert len(lines) == 3
    assert "times without zone" in words(done("info", *options).stdout)


def test_one_trace_needs_no_user(tmp_path):
    make_frame().iloc[:200].drop(columns="user").to_parquet(tmp_path / "raw.parquet")
    assert "No user column was found" in failed("info", tmp_path / "raw.parquet")
    assert "traces 1 " in words(done("info", tmp_path / "raw.parquet", "--one-trace").stdout)
    command = ("smooth", tmp_path / "raw.parquet", "--one-trace", "--epsilon", 200)
    for name, more in {"renamed.parquet": (), "kept.parquet": ("--keep-users",)}.items():
        done(*command, tmp_path / name, *more)
        assert list(gpd.read_parquet(tmp_path / name).columns) == ["time", "geometry"]


def test_nothing_left_is_an_error_with_its_cure_and_no_file(raw, tmp_path):
    result = run("smooth", raw, tmp_path / "safe.parquet", "--epsilon", 100_000)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "Warning: 3 of 3 traces could not be protected" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("Error: Nothing is left to write")
    assert result.stderr.endswith("Take a smaller epsilon (--epsilon).\n")
    assert [path.name for path in tmp_path.iterdir()] == ["raw.parquet"]


def test_nothing_in_is_nothing_out(raw, tmp_path):
    gpd.read_parquet(raw).iloc[:0].to_parquet(tmp_path / "none.parquet")
    result = done("smooth", tmp_path / "none.parquet", tmp_path / "safe.parquet", "--epsilon", 200)
    assert result.stdout.endswith("0 records of 0 traces\n")
    assert list(gpd.read_parquet(tmp_path / "safe.parquet").columns) == ["user", "time", "geometry"]


def test_only_force_replaces_a_file(raw, tmp_path):
    for command in (("smooth", "--epsilon", 200), ("prepare",)):
        output = tmp_path / "out.parquet"
        output.write_bytes(b"old")
        words = (*command, raw, output)
        assert "already exists." in failed(*words)
        assert output.read_bytes() == b"old"
        done(*words, "--force")
        assert len(gpd.read_parquet(output))


def test_a_file_is_never_written_over_the_input(raw):
    before = raw.read_bytes()
    assert "which would be lost" in failed("smooth", "--epsilon", 200, raw, raw, "--force", code=2)
    assert raw.read_bytes() == before


def test_one_trace_and_a_column_of_users_contradict_each_other(raw, tmp_path):
    assert "Specify one of them" in failed("info", raw, "--one-trace", "--user", "user", code=2)


def test_an_output_that_cannot_be_is_refused_before_the_input_is_read(tmp_path):
    (tmp_path / "here.csv").write_bytes(b"old")
    for output in ("here.csv", "nowhere/out.csv"):
        result = run("smooth", tmp_path / "nothing", tmp_path / output, "--epsilon", 200)
        assert result.exit_code == 1
        assert "reading" not in result.stderr


# Wrong usage.


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["smooth", "in"], "Missing argument 'OUTPUT'"),
        (["smooth", "in", "out.csv"], "Missing option '--epsilon'"),
        (["smooth", "in", "out.csv", "--epsilon", "far"], "must be a number. Got 'far' instead"),
        (["smooth", "in", "out.csv", "--epsilon", "-5"], "must be a finite number of metres above zero"),
        (["smooth", "in", "out.csv", "--epsilon", "nan"], "must be a finite number of metres above zero"),
        (["smooth", "in", "out.csv", "--epsilon", "0.001"], "must be between 0.01 and 1,000,000 metres"),
        (["smooth", "in", "out.csv", "--epsilon", "200", "--variant", "prose"], "'prose' is not one of"),
        (
            ["smooth", "in", "out.csv", "--epsilon", "200", "--min-points", "0"],
            "must be a whole number of at least 1. Got 0 instead",
        ),
        (["smooth", "in", "out.csv", "--epsilon", "200", "--format", "dxf"], "'dxf' is not one of"),
        (["smooth", "in", "out.csv", "--epsilon", "200", "--seed", "1"], "No such option"),
        (["smooth", "in", "out.shp", "--epsilon", "200"], "must end with one of '.parquet'"),
        (["prepare", "in", "out"], "must end with one of '.parquet'"),
        (["prepare", "in", "out.csv", "--tz", "Paris"], "must be a time zone such as 'Europe/Paris'"),
        (["prepare", "in", "out.csv", "--gap", "long"], "must be a duration above zero"),
        (["prepare", "in", "out.csv", "--gap", "0"], "must be a duration above zero"),
        (["prepare", "in", "out.csv", "--gap=-4h"], "must be a duration above zero"),
        (["prepare", "in", "out.csv", "--days", "0"], "a whole number of at least 1. Got 0 instead"),
        (["prepare", "in", "out.csv", "--days", "many"], "must be a whole number of at least 1. Got 'many' instead"),
        (["prepare", "in", "out.csv", "--min-days", "0"], "a whole number of at least 1. Got 0 instead"),
        (["info"], "Missing argument 'INPUT'"),
        (["demo", "--epsilon", "0"], "must be a finite number of metres above zero"),
        (["anonymize"], "No such command 'anonymize'"),
    ],
)
def test_wrong_usage_is_explained_and_exits_with_2(words, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").touch()
    assert reason in failed(*words, code=2)


# Files that cannot be read.


def test_a_missing_input_is_named(tmp_path):
    for command in (["info"], ["prepare"], ["smooth", "--epsilon", "200"]):
        output = [] if command == ["info"] else [tmp_path / "out.csv"]
        assert "does not exist" in failed(*command, tmp_path / "nothing.csv", *output)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"PAR1 and nothing more", "is cut, damaged or not GeoParquet"),
        (b"\x89PNG\r\n\x1a\n\0\0", "is an image"),
        (b"user,time,lon,lat\nzaphod,2008-05-17T10:00,-122.39,37.75,8\n", "names 4 columns"),
        (b"user,time,lon,lat\nzaphod,noon,-122.39,37.75\n", "no time such as"),
        (b"user,time,lon,lat\nzaphod,2008-05-17T10:00,37.75,-122.39\n", "swapped"),
        (b"user,time,x,y\nzaphod,2008-05-17T10:00,37.75,-122.39\n", "specify their CRS"),
        (b"uid,user_id,time,lon,lat\n1,2,2008-05-17T10:00,37.75,-22.39\n", "Several columns could hold the user"),
        (b"\x1f\x8b\x08\0 not gzip", "compressed with gzip, and cut or damaged"),
        (b'{"type": "FeatureCollection", "fea', "is cut, damaged or not GeoJSON"),
    ],
)
def test_a_bad_input_is_one_line_without_a_value(content, reason, tmp_path):
    (tmp_path / "raw.csv").write_bytes(content)
    said = failed("smooth", tmp_path / "raw.csv", tmp_path / "safe.csv", "--epsilon", "200")
    assert reason in said
    assert not re.search(r"zaphod|122\.39|37\.75", said)
    assert [path.name for path in tmp_path.iterdir()] == ["raw.csv"]


def test_a_cut_archive_is_one_line(tmp_path):
    content = b"".join(b"37.7 -122.4 0 %d\n" % (1_211_018_404 + step * step) for step in range(20_000))
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        member = tarfile.TarInfo("cabspottingdata/new_abboip.txt")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    for length in (40, len(stream.getvalue()) // 2):
        (tmp_path / "cabs.tar.gz").write_bytes(stream.getvalue()[:length])
        assert "cabs.tar.gz" in failed("smooth", tmp_path / "cabs.tar.gz", tmp_path / "safe.csv", "--epsilon", "200")


def test_a_folder_without_cabs_is_an_error(tmp_path):
    assert "no file in a known format" in failed("info", tmp_path)


def test_a_column_that_is_not_there_is_named(raw):
    said = failed("info", raw, "--user", "cab")
    assert said.endswith("The --user column 'cab' does not exist. The columns are 'user' and 'time'.")


def test_an_unknown_crs_is_named(tmp_path):
    (tmp_path / "raw.csv").write_text("user,time,x,y\na,2008-05-17T10:00,1,2\n", encoding="utf-8")
    assert "must be a coordinate reference system" in failed("info", tmp_path / "raw.csv", "--crs", "EPSG:0", code=2)


def test_a_local_grid_has_no_geojson(raw, tmp_path):
    frame = make_frame().to_crs("EPSG:32631").set_crs('LOCAL_CS["hall",UNIT["metre",1]]', allow_override=True)
    pg.write(frame, raw, force=True)
    said = failed("smooth", raw, tmp_path / "safe.geojson", "--epsilon", "200")
    assert "no place on the globe" in said


@pytest.mark.parametrize("option", ["--user", "--time", "--lon", "--lat", "--crs"])
def test_an_empty_name_is_a_wrong_call(option, raw):
    assert f"Invalid value for '{option}': must not be empty" in failed("info", raw, option, "", code=2)


GPX = """<gpx xmlns="http://www.topografix.com/GPX/1/1" version="1.1" creator="us"><trk><trkseg>
<trkpt lat="48" lon="2"><time>2008-05-17T10:00:00Z</time></trkpt></trkseg></trk></gpx>"""


def test_another_crs_than_the_format_s_own_is_refused(raw, tmp_path):
    (tmp_path / "a.gpx").write_text(GPX, encoding="utf-8")
    said = failed("info", tmp_path / "a.gpx", "--crs", "EPSG:32631")
    assert "'gpx' is in EPSG:4326, but --crs specifies another CRS" in said
    done("info", tmp_path / "a.gpx", "--crs", "EPSG:4326")
    assert "--crs is another one" in failed("info", raw, "--crs", "EPSG:32631")


@pytest.mark.parametrize(
    ("name", "content", "options", "words"),
    [
        ("a.gpx", GPX, ("--lat", "x"), "(format 'gpx') is read without --lat"),
        ("a.gpx", GPX, ("--lon", "x", "--time", "t"), "(format 'gpx') is read without --time and --lon"),
        ("a.gpx", GPX, ("--one-trace",), "is read without --one-trace"),
        ("new_a.txt", "37.75 -122.39 0 1213084600\n", ("--user", "x"), "(format 'cabspotting') is read without --user"),
        ("a.geojson", '{"type": "FeatureCollection", "features": []}', ("--lon", "x"), "is read without --lon"),
    ],
)
def test_an_option_without_use_is_refused(name, content, options, words, tmp_path):
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert words in failed("info", tmp_path / name, *options)


def test_an_option_may_be_of_use_for_the_protected_file_alone(tmp_path):
    (tmp_path / "a.gpx").write_text(GPX, encoding="utf-8")
    (tmp_path / "b.csv").write_text("user,when,lon,lat\na,2008-05-17T10:00:00Z,2,48\n", encoding="utf-8")
    assert "is read without" not in run("check", tmp_path / "a.gpx", tmp_path / "b.csv", "--time", "when").output


def test_an_output_within_the_input_is_refused(raw, tmp_path):
    (tmp_path / "in").mkdir()
    raw.rename(tmp_path / "in" / "raw.parquet")
    for output in ("in/out.parquet", "in/more/out.parquet", "else/../in/out.parquet"):
        said = failed("smooth", tmp_path / "in", tmp_path / output, "--epsilon", 200, code=2)
        assert "OUTPUT lies in the folder INPUT" in said
    done("smooth", tmp_path / "in", tmp_path / "out.parquet", "--epsilon", 200)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("# Read me\n\nThis is prose.\n", "names no columns separated by"),
        ("user,time,x,y\na,2024-01-01,1,2\n", "specify their CRS, as in --crs EPSG:32631."),
        ("user,when,lon,lat\na,2024-01-01,1,2\n", "Specify it, as in --time …."),
        ("time,lon,lat\n2024-01-01,1,2\n", "pass --one-trace. If each file is a user, pass --user file."),
        ("user,time,lon,lat\na,2024-01-01T10:00:00Z,1,95\n", "drop them with --skip."),
        ("user,time,lon,lat\na,17/05/2008,1,2\n", "no time such as 2008-05-17T10:00:04Z"),
        ("user,time,lon,lat\na,12,1,2\n", "nanoseconds since 1970"),
        ("\n", "it is empty."),
    ],
)
def test_errors_about_files_name_options_and_no_python(content, words, tmp_path):
    (tmp_path / "a.txt").write_text(content, encoding="utf-8")
    said = failed("info", tmp_path / "a.txt")
    assert words in said
    assert not any(sign in said for sign in ("='", "pandas", "=None"))


def test_a_parameter_of_a_reader_is_an_option(tmp_path):
    (tmp_path / "a.gpx").write_text(GPX, encoding="utf-8")
    assert "--user must be one of 'file', 'folder', 'folder-2', 'track'. Got 'x'" in failed(
        "info", tmp_path / "a.gpx", "--user", "x"
    )


def test_a_dash_is_no_input():
    assert "Standard input is not supported" in failed("info", "-")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are a matter of Unix")
@pytest.mark.parametrize("options", [(), ("--lat", "y"), ("--format", "table"), ("--format", "geolife")])
def test_a_pipe_is_no_input(options, tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    assert "is a pipe or a device" in failed("info", tmp_path / "pipe.csv", *options)
    with pytest.raises(ValueError, match="is a pipe or a device"):
        pg.read_table(tmp_path / "pipe.csv")


# Processes.


RUN = "import promesse_geo.cli.commands as cli; cli.main()"


def test_a_process_ends_with_0_1_or_2(raw, tmp_path, run_fresh):
    good = run_fresh(RUN, tmp_path, "smooth", raw, tmp_path / "safe.parquet", "--epsilon", 200)
    assert (good.returncode, good.stdout) == (0, f"{tmp_path / 'safe.parquet'}: 36 records of 2 traces\n")
    bad = run_fresh(RUN, tmp_path, "info", tmp_path / "nothing")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert "does not exist" in bad.stderr.splitlines()[-1]
    wrong = run_fresh(RUN, tmp_path, "smooth")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "Traceback" not in good.stderr + bad.stderr + wrong.stderr


def test_the_result_can_be_piped_without_the_progress(raw, tmp_path, run_fresh):
    result = run_fresh(RUN, tmp_path, "info", raw)
    assert result.stdout.startswith("records ")
    assert "reading" not in result.stdout
    assert "reading INPUT …" in result.stderr


PIPED = """
import os
read, write = os.pipe()
os.write(write, b"user,time,lon,lat\\na,2008-05-17T10:00,1,2\\n")
os.close(write)
os.dup2(read, 0)
"""


def test_standard_input_is_no_input(tmp_path, run_fresh):
    result = run_fresh(PIPED + RUN, tmp_path, "info", "/dev/stdin")
    assert result.returncode == 1
    assert "is a pipe or a device" in result.stderr


def test_a_name_that_is_not_utf_8_is_written_and_said(raw, tmp_path, run_fresh):
    result = run_fresh(RUN, tmp_path, "pseudonymize", raw, tmp_path / "a\udcff.parquet")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "a\udcff.parquet").exists()


SLOW = """
import signal, time, importlib, promesse_geo.cli.commands as cli
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup ignores
writing = importlib.import_module("promesse_geo.io.writers")
def slowly(table, path):
    path.write_bytes(b"half")
    time.sleep(60)
writing.WRITERS[".csv"] = slowly
cli.main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_run_leaves_no_half_file(number, raw, tmp_path, start_fresh):
    folder = tmp_path / "out"
    folder.mkdir()
    child = start_fresh(SLOW, tmp_path, "pseudonymize", raw, folder / "safe.csv")
    deadline = time.monotonic() + 300
    while not any(path.stat().st_size for path in folder.glob("*/*")):
        assert time.monotonic() < deadline
        assert child.process.is_alive()
        time.sleep(0.01)
    os.kill(child.process.pid, number)
    done = child.wait(300)
    assert done.returncode == 128 + number
    assert "Traceback" not in done.stderr
    assert list(folder.iterdir()) == []


def test_signals_are_as_they_were_after_a_command(raw):
    before = signal.getsignal(signal.SIGTERM)
    done("info", raw)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_layer_of_input_can_be_named(tmp_path):
    city = make_frame()
    path = tmp_path / "days.gpkg"
    for layer in ("monday", "tuesday"):
        city.to_file(path, layer=layer)
    said = failed("smooth", path, tmp_path / "safe.csv", "--epsilon", 200)
    assert "several layers" in said
    assert said.strip().endswith("as in --layer monday.")
    done("smooth", path, tmp_path / "safe.csv", "--epsilon", 200, "--layer", "tuesday", "--keep-users")
    assert run("check", path, tmp_path / "safe.csv", "--epsilon", 200, "--layer", "tuesday").exit_code in (0, 3)
    pg.write(city, tmp_path / "city.csv")
    assert "without --layer" in failed("info", tmp_path / "city.csv", "--layer", "tuesday")


def test_impossible_jumps_are_removed_when_asked(tmp_path):
    frame = make_frame()
    frame.loc[5, "geometry"] = Point(10, 50)
    pg.write(frame, tmp_path / "raw.parquet")
    said = done("prepare", tmp_path / "raw.parquet", tmp_path / "parts.csv", "--max-speed", 50)
    assert "drop_jumps dropped 1 of 600 records" in said.stderr
    assert "599 records" in said.stdout


def test_fixes_at_zero_are_dropped_unless_they_are_to_be_kept(tmp_path):
    frame = make_frame()
    frame.loc[5, "geometry"] = Point(0, 0)
    pg.write(frame, tmp_path / "raw.parquet")
    said = done("prepare", tmp_path / "raw.parquet", tmp_path / "parts.csv")
    assert "drop_zero dropped 1 of 600 records" in said.stderr
    assert "599 records" in said.stdout
    said = done("prepare", tmp_path / "raw.parquet", tmp_path / "all.csv", "--keep-zero")
    assert "1 fix at longitude 0" in said.stderr
    assert "600 records" in said.stdout


@pytest.mark.parametrize(
    "sample", ["cabspotting", "geolife", "mdc/challenge", "mdc/campaign", "gpx/watch.gpx", "table/semicolons.csv"]
)
def test_the_format_of_every_sample_is_detected(sample):
    path = SAMPLES / sample
    if not path.exists():
        pytest.fail(f"there is no sample {sample}: {sorted(path.parent.iterdir())}")
    assert "records" in done("info", path).stdout


def test_messages_are_wrapped_between_words_in_a_terminal_only(monkeypatch, capsys):
    text = " ".join(["--secret-file"] * 30)
    layout.say(text)
    assert capsys.readouterr().err.splitlines() == [text]
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    layout.say(text)
    lines = capsys.readouterr().err.splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(line.strip() for line in lines) == text


def test_what_reads_the_output_may_end_before(raw, tmp_path):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "promesse_geo", "info", str(raw)]
    ended = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert ended.returncode == 1
    assert "roken pipe" not in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_package_that_is_not_installed_is_one_sentence(tmp_path, monkeypatch):
    def refuse(name):
        raise ImportError(name)

    monkeypatch.setattr("promesse_geo.io.fit.importlib.import_module", refuse)
    (tmp_path / "a.fit").write_bytes(b"\x0e\x10\0\0\0\0\0\0.FIT" + bytes(20))
    result = CliRunner().invoke(main, ["info", str(tmp_path / "a.fit")])
    assert result.exit_code == 1
    assert "Error: FIT files are read by the package fitdecode, which is not installed." in result.output


@pytest.mark.parametrize(
    ("option", "words"), [("--secret-file", "'.*folder': Is a directory"), ("--zones", "--zones .*folder is a folder")]
)
def test_a_folder_in_place_of_a_file_is_named(option, words, raw, tmp_path):
    (tmp_path / "folder").mkdir()
    result = CliRunner().invoke(main, ["zones", str(raw), str(tmp_path / "o.csv"), option, str(tmp_path / "folder")])
    assert result.exit_code == 1
    assert re.search(f"Error: {words}", result.output)


@pytest.mark.parametrize("command", [["zones", "--secret-file"], ["publish", "--config"]])
def test_a_file_that_is_no_text_is_one_sentence(command, raw, tmp_path):
    (tmp_path / "file").write_bytes(b"{\xff\xfe}")
    verb, option = command
    result = CliRunner().invoke(main, [verb, str(raw), str(tmp_path / "o.csv"), option, str(tmp_path / "file")])
    assert result.exit_code == 2
    assert "is not text in UTF-8" in " ".join(result.output.split())
