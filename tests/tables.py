"""Small tables in all formats, and what every error about a file must keep to."""

import io
import json
import re

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

import promesse_geo as pg

HEADER = "user,time,lon,lat"
ROWS = (
    ("ana", "2024-03-04T08:00:00Z", "4.84", "45.75"),
    ("ana", "2024-03-04T08:01:00Z", "4.85", "45.76"),
    ("ben", "2024-03-04T08:00:30Z", "-0.5", "44.8"),
)
LINE = ",".join(ROWS[0])
LINES = "".join(",".join(row) + "\n" for row in ROWS)
TEXT = f"{HEADER}\n{LINES}"
SECONDS = [1_709_539_200, 1_709_539_260, 1_709_539_230]
POINT = {"type": "Point", "coordinates": [4.84, 45.75]}
TIMES = pd.to_datetime(SECONDS, unit="s", utc=True)
# What no message may hold: user keys, coordinates, times, and the wording of pyarrow and GDAL.
SECRETS = re.compile(r"45[.,]?7|48|zoé|\bana\b|2024|17095|4\.8")
FOREIGN = re.compile(r"sqlite|driver|parse error|magic|thrift|Arrow|utf-8'|column #|\n", re.IGNORECASE)


def written(folder, content, name="table.csv"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def csv_of(folder, *lines):
    return written(folder, "".join(line + "\n" for line in lines))


def as_frame(**columns) -> gpd.GeoDataFrame:
    """The rows above, with further columns."""
    users, _, lon, lat = zip(*ROWS, strict=True)
    points = gpd.points_from_xy(np.array(lon, float), np.array(lat, float))
    return gpd.GeoDataFrame({"user": users, "time": TIMES} | columns, geometry=points, crs=4326)


def save(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_file(path)
    return path


def assert_rows(frame, *, users=("ana", "ana", "ben")) -> None:
    """The rows above, whatever the names of the columns."""
    user, when, place = frame.columns
    assert frame[user].tolist() == list(users)
    times = pd.DatetimeIndex(frame[when])
    assert str(times.tz) == "UTC"
    assert times.as_unit("ns").equals(pd.DatetimeIndex(TIMES).as_unit("ns"))
    np.testing.assert_allclose(frame[place].x, [4.84, 4.85, -0.5], rtol=0, atol=1e-9)
    np.testing.assert_allclose(frame[place].y, [45.75, 45.76, 44.8], rtol=0, atol=1e-9)
    assert frame.crs == "EPSG:4326"


def refused(path, **named) -> str:
    """Return the error about a file: of a plain kind, with the file's name, in our words and without values."""
    with pytest.raises((ValueError, TypeError, KeyError)) as caught:
        pg.read_table(path, **named)
    message = caught.value.args[0]
    assert caught.type in (ValueError, TypeError, KeyError)
    assert message.startswith(repr(str(path)))
    rest = message.replace(str(path), "")
    assert not SECRETS.search(re.sub(r"such as \S+", "", rest))
    assert not FOREIGN.search(rest)
    return message


def parquet_bytes() -> bytes:
    content = io.BytesIO()
    as_frame().to_parquet(content)
    return content.getvalue()


def geojson_of(tmp_path, *records, geometry=POINT):
    features = [{"type": "Feature", "properties": record, "geometry": geometry} for record in records]
    return written(tmp_path, json.dumps({"type": "FeatureCollection", "features": features}), "table.geojson")
