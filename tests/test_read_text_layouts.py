"""Text tables in other layouts than a plain CSV, and the options for them."""

import gzip
import io
import tarfile
import zipfile

import pandas as pd
import pytest
from click.testing import CliRunner

import promesse_geo as pg
from promesse_geo.cli.commands import main

ROWS = "a,2024-03-04 08:00:00,4.8,45.7\na,2024-03-04 08:01:00,4.9,45.8\n"
GERMAN = "user;time;lon;lat;Straße\na;25.03.2024 08:00:00;4,8;45,7;Königsweg\na;25.03.2024 08:01;4,9;45,8;Am Tor\n"


def written(folder, content, name="table.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(content.encode(encoding))
    return path


@pytest.mark.parametrize(
    "content",
    [
        "user,time,lon,lat\n" + ROWS,
        "sep=;\nuser;time;lon;lat\n" + ROWS.replace(",", ";"),
        "Export of a logger\n\nuser,time,lon,lat\n" + ROWS,
        "# a comment\n# another, longer one\nuser,time,lon,lat\n" + ROWS,
        "user,time,lon,lat,\n" + ROWS,
        "user,time,lon,lat\n" + ROWS.replace("\n", ",\n"),
        "user,date,time,lon,lat\n" + ROWS.replace("04 ", "04,"),
        "user,date,time,lon,lat\n" + ROWS.replace("04 ", "04,").replace("-", "/"),
    ],
)
def test_layouts_are_found(content, tmp_path):
    frame = pg.read_table(written(tmp_path, content))
    assert frame["time"].tolist() == list(pd.to_datetime(["2024-03-04 08:00", "2024-03-04 08:01"]))
    assert frame.geometry.x.tolist() == [4.8, 4.9]
    assert frame.geometry.y.tolist() == [45.7, 45.8]
    assert frame["user"].tolist() == ["a", "a"]


def test_times_in_utc_by_name(tmp_path):
    frame = pg.read_table(written(tmp_path, "user,time,lon,lat\n" + ROWS.replace(":00,", ":00 UTC,")))
    assert frame["time"].tolist() == list(pd.to_datetime(["2024-03-04 08:00", "2024-03-04 08:01"], utc=True))


def test_german_excel_names_its_two_options(tmp_path):
    path = written(tmp_path, GERMAN, encoding="cp1252")
    time = r'Specify time_format=.* \(--time-format "%d\.%m\.%Y %H:%M:%S"\)'
    with pytest.raises(ValueError, match=rf"--encoding cp1252\)\. The time column 'time' .*{time}"):
        pg.read_table(path)
    with pytest.raises(ValueError, match=time):
        pg.read_table(path, encoding="cp1252")
    frame = pg.read_table(path, encoding="cp1252", time_format="%d.%m.%Y %H:%M:%S", tz="Europe/Berlin")
    assert frame["time"].tolist() == list(pd.to_datetime(["2024-03-25 07:00", "2024-03-25 07:01"], utc=True))
    assert str(frame["time"].dt.tz) == "Europe/Berlin"
    assert frame.geometry.x.tolist() == [4.8, 4.9]


GERMAN_NAMES = "Wer;Zeitpunkt;Ost;Nord;Straße\n"
NEEDS = {
    "encoding": "--encoding cp1252",
    "names": "No user column, no lon column and no lat column were found",
    "time": '--time-format "%d.%m.%Y %H:%M:%S"',
}


@pytest.mark.parametrize("size", [1, 3000])  # lines: less and more than is looked at first
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("header", ["Straße", "Strasse"])
def test_one_error_names_all_that_text_needs(size, packed, header, tmp_path):
    rows = "Jörg;25.03.2024 08:00:00;4,8;45,7;Königsweg\n" * size
    content = (GERMAN_NAMES.replace("Straße", header) + rows).encode("cp1252")
    path = tmp_path / "table.csv.gz" if packed else tmp_path / "table.csv"
    path.write_bytes(gzip.compress(content) if packed else content)
    given = {"user": "Wer", "lon": "Ost", "lat": "Nord"}
    solved = {"encoding": {"encoding": "cp1252"}, "names": given, "time": {"time_format": "%d.%m.%Y %H:%M:%S"}}
    for known in (set(), {"encoding"}, {"names"}, {"time"}, {"encoding", "time"}, {"names", "time"}):
        options = {key: value for need in known for key, value in solved[need].items()}
        with pytest.raises((ValueError, KeyError)) as caught:
            pg.read_table(path, **options)
        words = caught.value.args[0]
        for need, expected in NEEDS.items():
            assert (expected in words) == (need not in known), (need, words)
            assert words.count(expected) <= 1
        assert "25.03" not in words
        assert "rg;" not in words
    options = {key: value for each in solved.values() for key, value in each.items()}
    assert len(pg.read_table(path, **options)) == size


def test_an_error_beyond_the_beginning_names_what_the_beginning_shows(tmp_path):
    rows = "a;25.03.2024 08:00;4,8;45,7;Am Tor\n" * 3000 + "Jörg;25.03.2024 08:00;4,8;45,7;Am Tor\n"
    (tmp_path / "table.csv").write_bytes(("user;time;lon;lat;Strasse\n" + rows).encode("cp1252"))
    with pytest.raises(ValueError, match=r"--encoding cp1252\)\. The time column.*--time-format"):
        pg.read_table(tmp_path / "table.csv")


def test_the_encoding_of_what_is_not_read_is_not_asked_for(tmp_path):
    rows = "a;25.03.2024 08:00;4,8;45,7;Königsweg\n"
    (tmp_path / "table.csv").write_bytes(("user;time;lon;lat;Strasse\n" + rows).encode("cp1252"))
    with pytest.raises(ValueError, match="--time-format") as caught:
        pg.read_table(tmp_path / "table.csv")
    assert "--encoding" not in str(caught.value)
    assert len(pg.read_table(tmp_path / "table.csv", time_format="%d.%m.%Y %H:%M")) == 1


def test_nothing_is_added_to_an_error_of_sound_text(tmp_path):
    path = written(tmp_path, "user,time,lon,lat\n" + ROWS + "a,2024-03-04 08:02:00,x,45.7\n")
    with pytest.raises(ValueError, match=r"'lon' holds something that is not a number.*\(--skip\)\.$"):
        pg.read_table(path)


def test_an_order_of_day_and_month_is_never_guessed(tmp_path):
    path = written(tmp_path, "user,time,lon,lat\na,03/04/2021 08:00,4.8,45.7\n")
    with pytest.raises(ValueError, match="not sure") as caught:
        pg.read_table(path)
    assert "%d/%m/%Y %H:%M" in str(caught.value)
    assert "%m/%d/%Y %H:%M" in str(caught.value)
    assert pg.read_table(path, time_format="%m/%d/%Y %H:%M")["time"][0] == pd.Timestamp("2021-03-04 08:00")


def test_text_without_header_in_a_folder(tmp_path):
    written(tmp_path, ROWS, "1.txt")
    written(tmp_path, ROWS.replace("a,", "b,"), "2.txt")
    for read in (pg.read_table, pg.read_file):
        traces = read(tmp_path, columns="user,time,lon,lat", as_traces=True)
        assert pd.Index(traces.users).tolist() == ["a", "b"]
        assert traces.records == 4


def test_local_times_that_the_clock_shows_twice_are_invalid(tmp_path):
    rows = "".join(f"a,{time},4.8,45.7\n" for time in ("2024-10-27 01:30:00", "2024-10-27 02:30:00"))
    path = written(tmp_path, "user,time,lon,lat\n" + rows)
    with pytest.raises(ValueError, match="1 record of 2"):
        pg.read_table(path, tz="Europe/Berlin")


def test_wrong_options_are_refused(tmp_path):
    path = written(tmp_path, "user,time,lon,lat\n" + ROWS)
    for options in (
        {"separator": ";;"},
        {"decimal": "x"},
        {"encoding": "no such"},
        {"encoding": "rot13"},
        {"encoding": "hex"},
        {"encoding": "punycode"},
        {"encoding": "undefined"},
        {"columns": "a,a"},
        {"columns": []},
        {"time_format": "%d %d"},
        {"time_format": "%Q"},
        {"tz": "Nowhere"},
    ):
        with pytest.raises(ValueError, match=next(iter(options))):
            pg.read_table(path, **options)
    for columns in ([1, 2], 5, [None], {"user": "time"}):
        with pytest.raises(TypeError, match="columns"):
            pg.read_table(path, columns=columns)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32"])
def test_wide_text_without_a_mark_is_read_in_its_encoding(encoding, tmp_path):
    path = written(tmp_path, "user,time,lon,lat\n" + ROWS, encoding=encoding)
    assert len(pg.read_table(path, encoding=encoding)) == ROWS.count("\n")


def test_times_that_nanoseconds_cannot_count_are_invalid_in_any_format(tmp_path):
    path = written(tmp_path, "user,time,lon,lat\na,01.01.0001 08:00,4.8,45.7\na,04.03.2024 08:00,4.8,45.7\n")
    with pytest.raises(ValueError, match=r"1 record of 2 .*no time, or one that cannot be read"):
        pg.read_table(path, time_format="%d.%m.%Y %H:%M")


def test_names_of_zones_in_a_format_make_times_utc(tmp_path):
    path = written(tmp_path, "user,time,lon,lat\na,04.03.2024 08:00 UTC,4.8,45.7\n")
    frame = pg.read_table(path, time_format="%d.%m.%Y %H:%M %Z")
    assert frame.time[0] == pd.Timestamp("2024-03-04 08:00", tz="UTC")


def test_numbers_with_fractions_beside_missing_ones_are_times(tmp_path):
    path = written(tmp_path, "user,time,lon,lat\na,1709539200.5,4.8,45.7\na,NA,4.8,45.7\n")
    with pytest.warns(UserWarning, match="dropped 1 record|as seconds since 1970"):
        frame = pg.read_table(path, errors="skip")
    assert frame.time.tolist() == [pd.Timestamp("2024-03-04 08:00:00.5", tz="UTC")]


def test_the_command_line_takes_the_options(tmp_path):
    path = written(tmp_path, GERMAN, encoding="cp1252")
    options = ["--encoding", "cp1252", "--time-format", "%d.%m.%Y %H:%M:%S", "--tz", "Europe/Berlin"]
    for command in (["info", path], ["prepare", path, tmp_path / "parts.csv"]):
        result = CliRunner().invoke(main, [*map(str, command), *options])
        assert result.exit_code == 0, result.output


def packed(path, members):
    """A zip or tar archive of texts."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
    else:
        with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content.encode())
                archive.addfile(info, io.BytesIO(content.encode()))
    return path


archives = pytest.mark.parametrize("name", ["data.zip", "data.tar", "data.tar.gz"])


@archives
@pytest.mark.parametrize("members", [["1.csv", "2.csv"], ["a/1.txt", "b/2.txt"], ["one.csv"]])
def test_options_of_text_hold_in_archives(name, members, tmp_path):
    rows = {member: ROWS.replace("a,", f"{i},").replace(",", ";") for i, member in enumerate(members)}
    path = packed(tmp_path / name, rows)
    for format in (None, "table"):
        options = {"columns": "user,time,lon,lat", "separator": ";", "tz": "Europe/Paris", "format": format}
        traces = pg.read_file(path, as_traces=True, **options)
        assert traces.users.tolist() == list(range(len(members)))
        assert traces.records == 2 * len(members)
        assert str(traces.time_format.zone) == "Europe/Paris"


@archives
def test_read_table_points_to_read_file_for_archives(name, tmp_path):
    path = packed(tmp_path / name, {"one.csv": "user,time,lon,lat\n" + ROWS})
    with pytest.raises(ValueError, match=r"archive.* read_file") as caught:
        pg.read_table(path)
    assert repr(str(path)) in str(caught.value)
    assert len(pg.read_file(path)) == 2


def test_a_folder_of_text_without_header_names_the_option(tmp_path):
    written(tmp_path, ROWS, "1.txt")
    with pytest.raises(ValueError, match=r"--columns"):
        pg.read_file(tmp_path)
