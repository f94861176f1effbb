"""Records that a column marks as bad are left out of folders of Parquet, of which one batch at a time is in memory."""

import warnings

import numpy as np
import pandas as pd
import pyproj
import pytest

import promesse_geo as pg
from promesse_geo.bulk import files, plan

pytestmark = pytest.mark.filterwarnings("ignore:The data")
SIZE = 400
NOISE = pg.GeoIndistinguishability(0.01, seed=1)


def table(**columns):
    times = pd.date_range("2024-05-01 08:00", periods=SIZE, freq="1min", tz="UTC")
    users = np.repeat(["a", "b"], SIZE // 2)
    return pd.DataFrame({"user": users, "time": times, "lon": 4.8 + 0.001 * np.arange(SIZE), "lat": 45.7, **columns})


def words(*, bad=(), others=()):
    """A column of text that marks some records as bad, with other values in some."""
    values = np.full(SIZE, "true", object)
    values[list(bad)] = "False"
    values[list(others)] = "outlier"
    return values


@pytest.fixture
def sizes(monkeypatch):
    """Read in small batches; returns the sizes of those that were looked at for marks."""
    found, marks_some = [], plan.marks_some

    def look(parts):
        def counted():
            for part in parts:
                found.append(len(part))
                yield part

        return marks_some(counted())

    monkeypatch.setattr(plan, "_BATCH", 60)
    monkeypatch.setattr(plan, "marks_some", look)
    monkeypatch.setattr(files, "chunk_size", lambda memory, workers: 90)
    return found


def protect(folder):
    """Return the times and places that are left of a folder, ordered by user and time, and the report."""
    report = pg.protect_parquet(folder, folder.parent / "out", NOISE, keep_users=True)
    return in_order(pg.read_table(folder.parent / "out")), report


def in_order(frame):
    ordered = frame.sort_values("time")
    return [*zip(ordered["user"], ordered["time"], ordered.geometry.x, ordered.geometry.y, strict=True)]


@pytest.mark.parametrize("kind", ["flags", "text", "categories"])
@pytest.mark.parametrize("bad", [[0], [399], [3, 70, 71, 250, 399]])
def test_marks_in_any_row_group_leave_out_records_with_one_warning(tmp_path, sizes, kind, bad):
    values = words(bad=bad)
    marks = {"flags": values == "true", "text": values, "categories": pd.Categorical(values)}[kind]
    (tmp_path / "in").mkdir()
    data = table(visible=marks)
    data.to_parquet(tmp_path / "in" / "a.parquet", row_group_size=70)
    with pytest.warns(UserWarning, match=rf"{len(bad)} records? marked as bad.*row {bad[0]} of") as caught:
        result, report = protect(tmp_path / "in")
    assert len(caught) == 1
    assert len(result) == SIZE - len(bad)
    assert result == in_order(NOISE.protect(data.drop(index=bad, columns="visible")))
    assert report.dropped_records == 0
    assert 0 < max(sizes) <= 60
    assert kind == "flags" or len(sizes) > 1


@pytest.mark.parametrize("others", [[0], [399]])
def test_a_column_with_another_value_in_any_row_group_marks_nothing(tmp_path, sizes, others):
    (tmp_path / "in").mkdir()
    table(valid=words(bad=[3, 250], others=others)).to_parquet(tmp_path / "in" / "a.parquet", row_group_size=70)
    with warnings.catch_warnings(action="error"):
        result, _ = protect(tmp_path / "in")
    assert len(result) == SIZE
    assert (len(sizes) == 1) == (others == [0])  # the first batch decides, or all are read


def test_marked_records_do_not_choose_the_space(tmp_path):
    data = table(valid=words(bad=[17]))
    x, y = pyproj.Transformer.from_crs(4326, 2154, always_xy=True).transform(data["lon"], data["lat"])
    data = data.assign(lon=x, lat=y)
    data.loc[17, ["lon", "lat"]] = 3e6, 9e6  # where the projection is far from true
    (tmp_path / "in").mkdir()
    data.to_parquet(tmp_path / "in" / "a.parquet", row_group_size=70)
    options = plan.ReadOptions(..., ..., "lon", "lat", 2154, None, lenient=False)
    found = plan.find_sources(tmp_path / "in", options, chunk=100, owner="protect_parquet", drops=False)
    assert plan.find_space(found, None).name == "plane"
    data.drop(columns="valid").to_parquet(tmp_path / "in" / "a.parquet", row_group_size=70)
    found = plan.find_sources(tmp_path / "in", options, chunk=100, owner="protect_parquet", drops=False)
    assert plan.find_space(found, None).name == "sphere"
