"""JSON objects with positions, in an array or one a line, are read as pandas reads them."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import ROWS, written

import promesse_geo as pg
from promesse_geo.io.registry import guess_format

TRACCAR = [
    {
        "id": number,
        "attributes": {"batteryLevel": 80, "distance": 0.0},
        "deviceId": device,
        "protocol": "osmand",
        "serverTime": "2024-03-04T08:00:02.000+00:00",
        "deviceTime": "2024-03-04T08:00:00.000+00:00",
        "fixTime": f"2024-03-04T08:0{number}:00.000+00:00",
        "outdated": False,
        "valid": number != 2,
        "latitude": 45.7 + number / 100,
        "longitude": 4.8,
        "altitude": 170.0,
        "network": None,
    }
    for number, device in enumerate([7, 7, 7, 9])
]


def test_traccar_is_read_by_its_devices(tmp_path):
    path = written(tmp_path, json.dumps(TRACCAR), "positions.json")
    with pytest.warns(UserWarning, match="1 record .*marked as bad in the column 'valid'.*; first at record 3"):
        frame = pg.read_file(path)
    assert frame["user"].tolist() == ["7", "7", "9"]
    assert frame["time"].dt.minute.tolist() == [0, 1, 3]
    np.testing.assert_allclose(frame.geometry.y, [45.7, 45.71, 45.73], rtol=0, atol=1e-9)


records = st.lists(
    st.tuples(
        st.sampled_from(["ana", "ben", "zoé"]),
        st.datetimes(pd.Timestamp("1995-01-01"), pd.Timestamp("2090-01-01")),
        st.floats(-179, 179),
        st.floats(-80, 80),
    ),
    min_size=1,
    max_size=20,
)


@given(records=records, lines=st.booleans(), as_numbers=st.booleans(), packed=st.booleans())
@pytest.mark.filterwarnings("ignore:read_file took the numbers")
def test_what_pandas_writes_is_read(tmp_path_factory, records, lines, as_numbers, packed):
    frame = pd.DataFrame(records, columns=["user", "time", "lon", "lat"])
    frame["time"] = frame["time"].astype("datetime64[ms]")  # pandas writes milliseconds
    made = frame.assign(time=frame["time"].astype("int64")) if as_numbers else frame
    text = made.to_json(orient="records", lines=lines, date_format="iso", date_unit="ms", double_precision=15)
    content = text.encode()
    folder = tmp_path_factory.mktemp("records")
    path = written(folder, gzip.compress(content) if packed else content, "x.json.gz" if packed else "x.json")
    assert guess_format(path) == "json"
    read = pg.read_file(path)
    expected = frame.sort_values(["user", "time"], kind="stable").reset_index(drop=True)
    assert read["user"].tolist() == expected["user"].tolist()
    assert read["time"].tolist() == expected["time"].dt.tz_localize("UTC").tolist()
    np.testing.assert_allclose(read.geometry.x, expected["lon"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(read.geometry.y, expected["lat"], rtol=0, atol=1e-9)


def test_records_without_a_user_are_of_the_file(tmp_path):
    objects = [{"t": time, "lat": float(lat), "lng": float(lon)} for _, time, lon, lat in ROWS]
    written(tmp_path, "\n".join(map(json.dumps, objects)), "ana.jsonl")
    assert pg.read_file(tmp_path)["user"].unique().tolist() == ["ana"]
    assert pg.read_file(tmp_path, user="folder")["user"].unique().tolist() == [tmp_path.name]


def test_the_unit_of_numbers_is_said_once_for_all_files(tmp_path):
    for number in range(3):
        objects = [{"t": 1_709_539_200 + number, "lat": 45.7, "lng": 4.8}]
        written(tmp_path, json.dumps(objects), f"user{number}.json")
    with pytest.warns(UserWarning, match="read_file took the numbers of the time column 't' as seconds") as caught:
        assert len(pg.read_file(tmp_path)) == 3
    assert len(caught) == 1


def test_what_is_missing_or_invalid_is_counted(tmp_path):
    objects = [{"user": user, "time": time, "lat": float(lat), "lon": float(lon)} for user, time, lon, lat in ROWS]
    bad = [{**objects[0], "time": None}, {**objects[0], "time": [1]}, {**objects[0], "lat": "north"}, 7]
    path = written(tmp_path, json.dumps(objects + bad), "x.json")
    with pytest.warns(UserWarning, match="dropped") as caught:
        assert len(pg.read_file(path)) == 3
    words = " ".join(str(each.message) for each in caught)
    assert "2 records (no time, or an invalid one; first at record 4" in words
    assert "1 record (no coordinates, or invalid ones; first at record 6" in words
    assert "1 record (no JSON object; first at record 7" in words


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([{"lat": 1, "lon": 2, "time": "noon"}], "no time such as"),
        ([{"lat": 1, "lon": 2}], "No time column"),
        ([{"time": "2024-03-04", "x": 2, "y": 3}], "No lon column"),
        ([{"lat": 1, "lon": 2, "latitude": 3, "ts": 4, "timestamp": 5}], "Several columns could hold the time"),
        ([], "no JSON objects"),
    ],
)
def test_errors_name_the_file_and_no_value(content, words, tmp_path):
    path = written(tmp_path, json.dumps(content), "x.json")
    with pytest.raises(ValueError, match=words) as caught:
        pg.read_file(path, format="json")
    assert repr(str(path)) in str(caught.value)
    assert "noon" not in str(caught.value)
