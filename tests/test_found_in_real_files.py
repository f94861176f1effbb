"""Layouts that real files have and that once failed; the formats themselves have tests of their own."""

import geopandas as gpd
import pandas as pd
import pytest
from click.testing import CliRunner
from tables import as_frame, written

import promesse_geo as pg
from promesse_geo.cli.commands import main

TIME = "2024-03-04T08:00:00Z"


def test_read_file_returns_a_frame_and_traces_if_asked(tmp_path):
    path = written(tmp_path, f"user,time,lon,lat\nana,{TIME},4.8,45.7\n")
    assert isinstance(pg.read_file(path), gpd.GeoDataFrame)
    traces = pg.read_file(path, as_traces=True)
    assert isinstance(traces, pg.Traces)
    with pytest.raises(AttributeError, match="to_frame"):
        _ = traces.promesse


def test_names_in_capitals_are_known_to_readers_frames_and_writers(tmp_path):
    times = ("08:00", "08:10", "08:20")
    rows = "".join(f"a,2024-03-04T{time}:00Z,45.{i},4.8\n" for i, time in enumerate(times, 1))
    frame = pg.read_table(written(tmp_path, "User,Time,Lat,Lon\n" + rows))
    pg.write(frame, tmp_path / "back.gpkg")
    assert len(pg.read_file(tmp_path / "back.gpkg")) == 3
    bare = gpd.GeoDataFrame(frame)
    bare.attrs = {}
    assert pg.Traces.from_frame(bare).records == 3
    assert len(bare.promesse.smooth(100)) > 100


NAMES = {
    "MovingPandas": ("trajectory_id", "t", "lon", "lat"),
    "AIS": ("MMSI", "BaseDateTime", "LON", "LAT"),
    "Movebank": ("individual-local-identifier", "timestamp", "location-long", "location-lat"),
    "Movebank through R": ("individual.local.identifier", "timestamp", "location.long", "location.lat"),
    "a track": ("trackId", "time", "longitude", "latitude"),
    "Traccar": ("deviceId", "fixTime", "longitude", "latitude"),
    "a device": ("deviceid", "timestamp", "lon", "lat"),
    "OwnTracks": ("tid", "tst", "lon", "lat"),
    "OpenSky": ("icao24", "time", "lon", "lat"),
    "taxis": ("taxi_id", "date time", "longitude", "latitude"),
    "GDAL": ("track_fid", "time", "lon", "lat"),
    "a comment": ("user", "#time", "lon", "lat"),
    "AWARE": ("device_id", "timestamp", "double_longitude", "double_latitude"),
    "scikit-mobility": ("uid", "datetime", "lng", "lat"),
    "trackintel": ("user_id", "tracked_at", "longitude", "latitude"),
}


@pytest.mark.parametrize("source", NAMES)
def test_names_in_common_use_are_known(source, tmp_path):
    user, time, lon, lat = NAMES[source]
    path = written(tmp_path, f"other,{lon},{user},{lat},{time}\n1,4.8,7,45.7,{TIME}\n2,4.9,7,45.8,{TIME}\n")
    frame = pg.read_table(path)
    assert list(frame.columns[:2]) == [user, time]
    assert frame.geometry.x.tolist() == [4.8, 4.9]
    assert pg.Traces.from_frame(frame).records == 2  # the names go with the frame


def info(path, *options):
    return CliRunner().invoke(main, ["info", str(path), *options])


def test_date_and_time_in_two_columns_go_through_the_command_line(tmp_path):
    path = written(tmp_path, "user,date,time,lat,lon\na,2024-01-01,10:00:00,45.1,4.8\na,2024-01-01,10:01:00,45.2,4.8\n")
    result = info(path)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [("time", "10:00:00", "times of day without a date"), ("time", "2024-01-01", "dates without a time of day")],
)
def test_a_date_or_a_time_of_day_alone_is_named(column, value, words, tmp_path):
    path = written(tmp_path, f"user,{column},lat,lon\na,{value},45.1,4.8\na,{value},45.2,4.8\n")
    with pytest.raises(TypeError, match=words) as caught:
        pg.read_table(path)
    assert "[" not in str(caught.value)  # of a type of pyarrow
    result = info(path)
    assert result.exit_code == 1
    assert words in " ".join(result.output.split())


def test_a_file_without_header_is_told_to_add_one_or_to_name_the_columns(tmp_path):
    path = written(tmp_path, "1,2008-02-02 15:36:08,116.51172,39.92123\n" * 2, "1.txt")
    with pytest.raises(ValueError, match=r"Add a header, .*--columns"):
        pg.read_file(path)
    frame = pg.read_file(path, columns="taxi_id,date time,longitude,latitude")
    assert frame["taxi_id"].tolist() == [1, 1]


@pytest.mark.parametrize("above", ["sep=;\n", "# made by a logger\n", "Title of the export\n\n"])
@pytest.mark.parametrize("needless", ["", ";"])
def test_lines_above_and_a_needless_separator_do_not_matter(above, needless, tmp_path):
    rows = "".join(f"a;2024-01-01T10:0{i}:00Z;4.8;45.{i}{needless}\n" for i in range(4))
    path = written(tmp_path, f"{above}user;time;lon;lat;\n{rows}")
    assert len(pg.read_table(path)) == 4


def test_another_encoding_is_named_with_the_option(tmp_path):
    path = written(tmp_path, f"user,time,lon,lat\nZoé,{TIME},4.8,45.7\n".encode("cp1252"))
    with pytest.raises(ValueError, match=r"not text in UTF-8.*--encoding cp1252"):
        pg.read_table(path)
    assert pg.read_table(path, encoding="cp1252")["user"].tolist() == ["Zoé"]


@pytest.mark.parametrize("ending", ["geojson", "csv", "parquet", "gpkg", "fgb", "gpx"])
def test_a_written_file_without_records_can_be_read_again(ending, tmp_path):
    frame = as_frame()
    nothing = frame[frame["user"] == "nobody"]
    pg.write(nothing, tmp_path / f"none.{ending}")
    assert len(pg.read_file(tmp_path / f"none.{ending}")) == 0


def test_a_user_column_without_any_user_leads_to_a_remedy_that_works(tmp_path):
    path = written(tmp_path, f"track_id,time,lat,lon\n,{TIME},45.1,4.8\n,2024-03-04T08:01:00Z,45.2,4.8\n")
    for errors in ("raise", "skip"):
        with pytest.raises(ValueError, match=r"'track_id' is empty in all rows.* user=None"):
            pg.read_table(path, errors=errors)
    assert len(pg.read_table(path, user=None)) == 2


@pytest.mark.parametrize("word", ["", "None", "-", "#N/A"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_missing_coordinate_has_the_same_words_with_and_without_quotes(word, quote, tmp_path):
    lines = [["a", TIME, "45.1", "4.8"], ["a", "2024-03-04T08:01:00Z", word, word]]
    text = "".join(",".join(f"{quote}{value}{quote}" for value in line) + "\n" for line in lines)
    path = written(tmp_path, "user,time,lat,lon\n" + text)
    with pytest.raises(ValueError, match=r"1 record of 2 cannot be used.*errors='skip'"):
        pg.read_table(path)
    with pytest.warns(UserWarning, match="1 record"):
        assert len(pg.read_table(path, errors="skip")) == 1


def test_times_of_a_database_are_in_utc(tmp_path):
    path = written(tmp_path, "user,time,lat,lon\na,2018-05-31 12:00:00 UTC,45.1,4.8\n")
    assert pg.read_table(path)["time"][0] == pd.Timestamp("2018-05-31T12:00Z")
