"""Records that a column (`visible` of Movebank, `valid` of Traccar) marks as bad are left out, whatever the format."""

import json
import warnings

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import promesse_geo as pg

FLAGS = [True, False, True, True, False, True]
WRITERS = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "parquet": lambda frame, path: frame.to_parquet(path),
    "gpkg": lambda frame, path: _points(frame).to_file(path),
    "geojson": lambda frame, path: _points(frame).to_file(path),
}


def table(**columns):
    times = pd.date_range("2024-05-01 08:00", periods=len(FLAGS), freq="1min", tz="UTC")
    data = {"user": list("aaabbb"), "time": times, "lon": 4.8 + 0.001 * np.arange(6), "lat": 45.7, **columns}
    return pd.DataFrame(data)


def _points(frame):
    points = gpd.points_from_xy(frame["lon"], frame["lat"], crs=4326)
    return gpd.GeoDataFrame(frame.drop(columns=["lon", "lat"]), geometry=points)


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("column", ["visible", "VALID"])
def test_marked_records_are_left_out_of_all_tables_with_one_warning(tmp_path, ending, column):
    path = tmp_path / f"tracks.{ending}"
    WRITERS[ending](table(**{column: FLAGS}), path)
    with pytest.warns(
        UserWarning, match=rf"dropped 2 records \(marked as bad in the column '{column}'.*row 1"
    ) as caught:
        frame = pg.read_file(path)
    assert len(caught) == 1
    assert frame.geometry.x.to_numpy() == pytest.approx(4.8 + 0.001 * np.flatnonzero(FLAGS))
    assert frame["user"].tolist() == list("aabb")


@pytest.mark.parametrize("words", [("t", "f"), ("TRUE", "FALSE"), ("True", "false"), ("", "F")])
def test_marks_are_text_as_programs_write_it(tmp_path, words):
    table(valid=np.where(FLAGS, *words)).to_csv(tmp_path / "tracks.csv", index=False)
    with pytest.warns(UserWarning, match="marked as bad in the column 'valid'"):
        assert len(pg.read_table(tmp_path / "tracks.csv")) == 4


@pytest.mark.parametrize(
    "values",
    [["5", "0", "7", "8", "0", "6"], ["yes", "false", "", "", "", ""], ["1", "0", "1", "1", "0", "1"], ["true"] * 6],
)
def test_other_columns_of_these_names_mark_nothing(tmp_path, values):
    table(visible=values).to_csv(tmp_path / "tracks.csv", index=False)
    with warnings.catch_warnings(action="error"):
        assert len(pg.read_table(tmp_path / "tracks.csv")) == 6


def test_a_column_with_another_role_marks_nothing():
    with warnings.catch_warnings(action="error"):
        frame = pg.read_table(pa.Table.from_pandas(table(valid=list("tfttff")).drop(columns="user")), user="valid")
    assert len(frame) == 6


def test_marked_records_need_no_position_and_rows_of_others_are_those_of_the_file(tmp_path):
    data = table(visible=FLAGS)
    data.loc[[1, 5], "lon"] = np.nan
    data.to_csv(tmp_path / "tracks.csv", index=False)
    with pytest.raises(ValueError, match=r"1 record of 4 .*first in row 5"):
        pg.read_table(tmp_path / "tracks.csv")


def test_a_table_of_which_all_is_marked_is_empty():
    data = pa.Table.from_pandas(table(visible=False))
    with pytest.warns(UserWarning, match="dropped 6 records"):
        assert len(pg.read_table(data)) == 0


def test_both_columns_mark_records(tmp_path):
    rows = [f"a,2024-03-04T08:0{minute}:00Z,4.8,45.7" for minute in range(4)]
    marks = ["true,true", "false,true", "true,false", "true,"]
    text = "user,time,lon,lat,visible,valid\n" + "\n".join(
        f"{row},{mark}" for row, mark in zip(rows, marks, strict=True)
    )
    (tmp_path / "a.csv").write_text(text + "\n")
    with pytest.warns(UserWarning, match=r"2 records \(marked as bad in the columns 'visible' and 'valid'.*from 0"):
        assert len(pg.read_table(tmp_path / "a.csv")) == 2


KINDS = {
    "flags": np.array,
    "nullable flags": lambda flags: pd.array(flags, "boolean"),
    "objects": lambda flags: np.array(flags, object),
    "text": lambda flags: pd.array(list(map(str, flags)), "str"),
    "objects of text": lambda flags: np.array(list(map(str, flags)), object),
    "categories": lambda flags: pd.Categorical(list(map(str, flags))),
    "arrow": lambda flags: pd.array(flags, pd.ArrowDtype(pa.bool_())),
}
KEPT = np.flatnonzero(FLAGS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [lambda data: data, _points, lambda data: _points(data).set_index("time")])
def test_frames_leave_out_marked_records_with_one_warning(kind, make):
    data = table(visible=KINDS[kind](FLAGS))
    with pytest.warns(UserWarning, match=r"2 records of 6 .*marked as bad in the column 'visible'.*row 1") as caught:
        traces = pg.Traces.from_frame(make(data))
    assert len(caught) == 1
    assert traces.positions.tolist() == KEPT.tolist()
    assert traces.coordinates()[0] == pytest.approx(4.8 + 0.001 * KEPT)


@pytest.mark.parametrize("verb", ["drop_jumps", "geo_indistinguishability", "describe"])
def test_verbs_of_frames_leave_out_marked_records(verb):
    options = {"epsilon": 0.01, "seed": 1} if verb == "geo_indistinguishability" else {}
    data = _points(table(valid=FLAGS))
    with pytest.warns(UserWarning, match="marked as bad in the column 'valid'") as caught:
        result = getattr(data.promesse, verb)(**options)
    assert len(caught) == 1
    expected = getattr(data[FLAGS].drop(columns="valid").promesse, verb)(**options)
    assert result.astype(object).equals(expected.astype(object))


def test_marked_records_of_frames_may_be_invalid():
    data = _points(table(visible=FLAGS))
    data.loc[1, "time"], data.loc[4, "user"] = None, None
    with pytest.warns(UserWarning, match="2 records of 6"):
        assert pg.Traces.from_frame(data).records == 4
    data.loc[5, "user"] = None
    with (
        pytest.warns(UserWarning, match="2 records of 6"),
        pytest.raises(ValueError, match=r"1 record .*no user: 1, first in row 5"),
    ):
        pg.Traces.from_frame(data)


@pytest.mark.parametrize("values", [[1, 0, 1, 1, 0, 1], ["yes", "false", "", "", "", ""], [True, 0, "x", 1, 2, 3]])
def test_other_columns_of_frames_mark_nothing(values):
    data = table(visible=pd.Series(values, dtype=object if isinstance(values[0], (str, bool)) else int))
    with pytest.warns(UserWarning, match="The column 'visible' was dropped"):
        assert pg.Traces.from_frame(data).records == 6


def test_tables_of_arrow_leave_out_marked_records():
    noise = pg.GeoIndistinguishability(0.01, seed=1)
    data = table(valid=FLAGS)
    with pytest.warns(UserWarning, match="2 records of 6 .*'valid'"):
        safe = pg.protect_arrow(pa.Table.from_pandas(data), noise)
    good = data[FLAGS].drop(columns="valid")
    assert safe.equals(pg.protect_arrow(pa.Table.from_pandas(good, preserve_index=False), noise))


def test_reports_of_folders_count_marked_records(tmp_path):
    (tmp_path / "in").mkdir()
    table(valid=FLAGS).to_parquet(tmp_path / "in" / "a.parquet")
    with pytest.warns(UserWarning, match="marked as bad"):
        report = pg.protect_parquet(tmp_path / "in", tmp_path / "out", pg.GeoIndistinguishability(0.01))
    assert (report.records, report.dropped_records, report.counts["marked_records"]) == (6, 0, 2)


def test_json_marks_by_the_rule_of_columns(tmp_path):
    records = [
        {
            "deviceId": 1,
            "fixTime": f"2024-05-01T08:0{minute}:00Z",
            "latitude": 45.7,
            "longitude": 4.8,
            "valid": minute != 2,
        }
        for minute in range(5)
    ]
    path = tmp_path / "positions.json"
    path.write_text(json.dumps(records))
    with pytest.warns(UserWarning, match="1 record .*marked as bad in the column 'valid'"):
        assert pg.read_file(path, as_traces=True).records == 4
    records[0]["valid"] = 7
    path.write_text(json.dumps(records))
    assert pg.read_file(path, as_traces=True).records == 5


@pytest.mark.parametrize("flags", [FLAGS, [True] * 6])
@pytest.mark.filterwarnings("ignore:2 records of 6", "ignore:The data")
def test_a_column_of_marks_must_not_be_published(flags):
    data = _points(table())
    found = data.promesse.check(data.assign(valid=flags))
    row = found.set_index("test").loc["no other columns"]
    assert row["verdict"] == "failed"
    assert "'valid'" in row["reason"]
