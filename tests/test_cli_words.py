"""What commands print names what is typed on the command line, and no Python."""

import re
from datetime import timedelta

import click
import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import promesse_geo as pg
from promesse_geo.cli import layout, main
from promesse_geo.cli.errors import with_options_named
from promesse_geo.io.table_times import written_offset

PYTHON = re.compile(r"\w\(\)|\b[a-z_]+=(?:'|None|True|False|[\d…])|\bpg\.|\bgdf\b|' parameter|\bsecrets\.")
COMMANDS = {name: command for name, command in main.commands.items() if any(p.name == "source" for p in command.params)}
NEEDED = {
    "smooth": ["--epsilon", "200"],
    "geo-indistinguishability": ["--epsilon", "0.01"],
    "publish": ["--epsilon", "200"],
    "tune": ["--from", "100", "--to", "200", "--at-most", "poi-retrieval", "30"],
}
OF_FILES = ("raw.csv", "parts.csv", "two", "one.csv", "xy.csv", "bad.csv", "zoneless.csv", "nobody.csv", "segment.csv")


def table(frame):
    return pd.DataFrame(
        {"user": frame["user"], "time": frame["time"], "lon": frame.geometry.x, "lat": frame.geometry.y}
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files with all that is odd."""
    folder = tmp_path_factory.mktemp("words")
    city = pg.make_city(users=3, days=1, recorder="phone")
    x, y = city.geometry.x.to_numpy().copy(), city.geometry.y.to_numpy().copy()
    x[50::900], y[50::900], y[70::900] = 0, 0, 49
    odd = city.assign(geometry=gpd.points_from_xy(x, y, crs=4326))
    raw = table(odd)
    raw.to_csv(folder / "raw.csv", index=False)
    table(pg.prepare(city, tz="Europe/Paris", keep_user=True)).to_csv(folder / "parts.csv", index=False)
    table(pg.prepare(city, tz="Europe/Paris")).to_csv(folder / "nobody.csv", index=False)
    raw.head(1).to_csv(folder / "one.csv", index=False)
    raw.rename(columns={"lon": "x", "lat": "y"}).head(9).to_csv(folder / "xy.csv", index=False)
    raw.head(9).assign(lat=np.nan).to_csv(folder / "bad.csv", index=False)
    raw.head(99).assign(time=raw["time"].dt.tz_localize(None)).to_csv(folder / "zoneless.csv", index=False)
    raw.head(99).assign(segment=1).to_csv(folder / "segment.csv", index=False)
    for name, frame in (("two", raw), ("parquet", raw)):
        (folder / name).mkdir()
        for number in range(2):
            part = frame.iloc[number::2]
            if name == "two":
                part.to_csv(folder / name / f"{number}.csv", index=False)
            else:
                part.to_parquet(folder / name / f"{number}.parquet")
    return folder


def arguments(command, folder, source, *, force=True):
    """What is typed for a command with an INPUT."""
    page = command.name in ("report", "map")
    paths = {"protected": "nobody.csv", "output": "out.html" if page else "out.csv", "paths": "out.html"}
    words = [command.name, str(folder / source)]
    words += [str(folder / paths[p.name]) for p in command.params if isinstance(p, click.Argument) and p.name in paths]
    can = any(p.name == "force" for p in command.params)
    return [*words, *NEEDED.get(command.name, []), *(["--force"] if can and force else [])]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("source", OF_FILES)
def test_no_python_is_printed(folder, name, source):
    if name == "tune" and source != "one.csv":
        return  # it protects many times
    done = CliRunner().invoke(main, arguments(COMMANDS[name], folder, source))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert PYTHON.search(done.output) is None, done.output
    assert f"promesse-geo {name}" not in done.output, "the remedy is an option of this command"


@pytest.mark.parametrize("name", ["smooth", "geo-indistinguishability", "zones", "prepare"])
@pytest.mark.parametrize(
    "more", [[], ["--memory", "300MB"], ["--scratch", "nowhere"], ["--user", "nobody"], ["--force"]]
)
def test_no_python_is_printed_of_folders(folder, tmp_path, name, more):
    for _ in range(2):
        words = [name, str(folder / "parquet"), str(tmp_path / "out"), *NEEDED.get(name, []), *more]
        done = CliRunner().invoke(main, words)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert PYTHON.search(done.output) is None, done.output
        assert "protect_parquet" not in done.output


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("missing", ["source", "protected"])
def test_an_input_that_does_not_exist_is_named_first(folder, tmp_path, name, missing):
    words = arguments(COMMANDS[name], folder, "raw.csv", force=False)
    if missing == "protected" and str(folder / "nobody.csv") not in words:
        return
    known = str(folder / ("raw.csv" if missing == "source" else "nobody.csv"))
    words = [str(tmp_path / "missing") if word == known else word for word in words]
    words = [word.replace("out.csv", "out").replace("out.html", "out") for word in words]  # no known extension
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1
    assert done.output.startswith("Error: ")
    assert re.search(r"missing' does not exist", done.output.replace("\n", " ")), done.output


FILES = {"out": "out.csv", "report": "report.html", "save_config": "choices.json", "figure": "figure.png"}
FILES |= {"secret_file": "secret.txt"}


@pytest.mark.parametrize(
    ("name", "option"),
    [(name, each) for name, command in COMMANDS.items() for each in command.params if each.name in FILES]
    + [(name, None) for name in COMMANDS if name not in ("info", "check", "measure", "tune")],
    ids=lambda each: getattr(each, "name", each),
)
def test_a_folder_that_does_not_exist_is_an_error_before_the_input_is_read(folder, tmp_path, name, option):
    words = arguments(COMMANDS[name], folder, "raw.csv", force=False)
    missing = tmp_path / "missing"
    if option is None:
        words = [word.replace(str(folder / "out"), str(missing / "out")) for word in words]
    else:
        words = [word.replace(str(folder / "out"), str(tmp_path / "out")) for word in words]
        words += [option.opts[0], str(missing / FILES[option.name])]
    if option is not None and (name, option.name) == ("publish", "secret_file"):
        words += ["--zone-radius", "500"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1, done.output
    assert "missing' does not exist. Create it first." in " ".join(done.output.split())
    assert "reading INPUT" not in done.output


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        ("First apply drop_zero(), then prepare() (promesse-geo prepare).", "First apply promesse-geo prepare."),
        ("pass user='file' or 'folder' (--user file or --user folder)", "pass --user file or --user folder"),
        ("keep PrivacyZones(seed=secrets.token_hex(32)) (--secret-file FILE)", "keep --secret-file FILE"),
        (
            "Bring it to EPSG:4326: gdf.to_crs(4326) (ogr2ogr -t_srs EPSG:4326).",
            "Bring it to EPSG:4326: ogr2ogr -t_srs EPSG:4326.",
        ),
        ("calls (a few) are kept", "calls (a few) are kept"),
    ],
)
def test_what_is_typed_replaces_python(words, typed):
    assert with_options_named(words) == typed


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_the_same_options_of_reading(folder, tmp_path, name):
    """Their names, and values of them that suit a command suit the others."""

    def of_reading(command):
        return [each.opts for each in command.params if isinstance(each, layout.ReadingOption)]

    assert of_reading(COMMANDS[name]) == of_reading(COMMANDS["publish"])
    for person in ("ann", "bob"):
        (tmp_path / "raw" / person).mkdir(parents=True)
        (tmp_path / "raw" / person / "a.gpx").write_text(
            '<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>'
            '<trkpt lat="45.7" lon="4.8"><time>2024-03-04T08:00:00Z</time></trkpt></trkseg></trk></gpx>'
        )
    words = [
        word.replace(str(folder / "raw.csv"), str(tmp_path / "raw"))
        for word in arguments(COMMANDS[name], folder, "raw.csv")
    ]
    if name == "tune":
        words += ["--values", "2"]
    said = CliRunner().invoke(main, [*words, "--user", "folder", "--tz", "Europe/Paris"]).output
    assert "INPUT: 2 records of 2 traces" in said


def test_prepare_names_its_options_as_remedies(folder):
    words = arguments(COMMANDS["prepare"], folder, "raw.csv")
    said = CliRunner().invoke(main, [*words, "--keep-zero"]).output
    assert "Drop them with --keep-zero omitted and --max-speed 350." in said
    dropped = CliRunner().invoke(main, [*words, "--max-speed", "350"]).output
    assert "drop_zero dropped" in dropped
    assert "drop_jumps dropped" in dropped
    assert "Drop them" not in dropped


def test_what_is_odd_has_a_unit(folder):
    """Each count of what is odd says of what it is one."""
    lines = CliRunner().invoke(main, ["info", str(folder / "raw.csv")]).output.splitlines()
    odd = lines[lines.index("") + 1 :]
    assert len(odd) == 7
    assert [line for line in odd if not re.search(r"  (0|[\d,]+ (record|step|break|gap|user)s?\b.*)$", line)] == []
    assert any(re.match(r"steps above 50 m/s +\d+ steps", line) for line in odd)


@pytest.mark.parametrize(
    ("offset", "place", "swapped"),
    [
        ("+02:00", (52.0, 7.6), True),
        ("+02:00", (7.6, 52.0), False),
        ("+02:00", (2.3, 48.9), False),  # summer time of Paris
        ("+02:00", (-9.1, 38.7), False),  # neither is near
        ("-07:00", (-122.4, 37.8), False),
        ("+05:30", (12.9, 77.6), True),
        ("Z", (52.0, 7.6), False),  # times in UTC are recorded everywhere
    ],
)
def test_axes_that_the_zone_of_the_times_contradicts_are_said_to_be_swapped(tmp_path, offset, place, swapped):
    times = pd.to_datetime([f"2024-07-01T12:{minute:02}:00{offset}" for minute in range(9)])
    points = gpd.points_from_xy([place[0]] * 9, [place[1]] * 9)
    frame = gpd.GeoDataFrame({"user": "a", "time": times}, geometry=points, crs=4326)
    assert bool(pg.describe(frame)["swapped_axes"]) is swapped
    pg.write(frame, tmp_path / "a.parquet")
    said = CliRunner().invoke(main, ["info", str(tmp_path / "a.parquet")]).output
    assert ("likely swapped" in said) is swapped, said
    texts = [f"2024-07-01T12:{minute:02}:00{offset}" for minute in range(9)]
    table = pd.DataFrame({"user": "a", "time": texts, "lon": place[0], "lat": place[1]})
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "text.parquet")
    for name in ("a.csv", "text.parquet"):
        assert str(pg.read_file(tmp_path / name)["time"].dt.tz) == "UTC"
        said = CliRunner().invoke(main, ["info", str(tmp_path / name)]).output
        assert ("likely swapped" in said) is swapped, said


@pytest.mark.parametrize(
    ("texts", "offset"),
    [
        (["2024-07-01T12:00:00+02:00", "2024-12-01T12:00:00+01:00", "2024-07-01 12:00+02"], timedelta(hours=2)),
        (["01.07.2024 12:00:00.5 -0330"], timedelta(hours=-3, minutes=-30)),
        (["2024-07-01T12:00:00Z", None, 5], None),
        (["2024-07-01", "2024-07-01T12:00:00", "12:00-99"], None),
    ],
)
def test_the_offset_of_times_is_that_of_most_texts(texts, offset):
    found = written_offset(texts)
    assert (found and found.utcoffset(None)) == offset
