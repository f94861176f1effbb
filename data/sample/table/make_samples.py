"""Make the samples of GPX and of tables: `python data/sample/table/make_samples.py`."""

from pathlib import Path

import geopandas as gpd
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import promesse_geo as pg

SAMPLE = Path(__file__).resolve().parents[1]
NAMES = ("ana", "ben", "eve")
EXTENSION = "<extensions><gpxtpx:hr>88</gpxtpx:hr></extensions>"


def make_records() -> pd.DataFrame:
    """Twenty records of three people of the made-up city."""
    city = pg.make_city(users=3, days=1, seed=7, recorder="phone")
    city["time"] = city["time"].dt.tz_convert("UTC")
    parts = [part.iloc[300:320] for _, part in city.groupby("user")]
    city = pd.concat([part.assign(user=name) for name, part in zip(NAMES, parts, strict=True)], ignore_index=True)
    return pd.DataFrame(
        {"user": city["user"], "time": city["time"], "lon": city.geometry.x.round(6), "lat": city.geometry.y.round(6)}
    )


def iso(time, *, fraction="", zone="UTC") -> str:
    """ISO 8601, with Z where the offset is none."""
    return time.tz_convert(zone).isoformat().replace("+00:00", f"{fraction}Z")


def point(record, *, time=None, before="", after="") -> str:
    """A track point."""
    when = "" if time is None else f"<time>{time}</time>"
    return f'   <trkpt lat="{record.lat:.6f}" lon="{record.lon:.6f}">{before}{when}{after}</trkpt>\n'


def segment(points) -> str:
    """A segment of a track."""
    return f"  <trkseg>\n{''.join(points)}  </trkseg>\n"


def write_watch(records) -> None:
    """GPX 1.1: two tracks, three segments and an empty one, fractions, elevations, a point without a time."""
    first = [
        point(r, time=None if i == 4 else iso(r.time), before="<ele>170.5</ele>") for i, r in enumerate(records[:8])
    ]
    digits = (".25", ".123", ".123456", ".123456789")
    second = [point(r, time=iso(r.time, fraction=d)) for r, d in zip(records[8:12], digits, strict=True)]
    third = [point(r, time=iso(r.time)) for r in records[12:]]
    place = f'lat="{records[0].lat:.6f}" lon="{records[0].lon:.6f}"'
    (SAMPLE / "gpx" / "watch.gpx").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<gpx version="1.1" creator="A watch" xmlns="http://www.topografix.com/GPX/1/1">\n'
        " <metadata><time>2024-03-05T00:00:00Z</time></metadata>\n"
        f" <wpt {place}><time>2024-03-01T12:00:00Z</time><name>a waypoint</name></wpt>\n"
        f" <rte><rtept {place}/></rte>\n"
        f" <trk><name>first</name>\n{segment(first)}  <trkseg/>\n{segment(second)} </trk>\n"
        f" <trk><name>second</name>\n{segment(third)} </trk>\n</gpx>\n"
    )


def write_logger(records) -> None:
    """GPX 1.0 with a byte-order mark, without a creator; offsets from UTC, a point twice, a time that steps back."""
    zones = ("America/New_York", "Europe/Paris")
    order = [0, 1, 2, 3, 3, 5, 4, 6, 7, 8, 9, 10]
    points = [
        point(records[i], time=iso(records[i].time, zone=zones[i % 2]), after="<speed>3.5</speed>") for i in order
    ]
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<gpx version="1.0" xmlns="http://www.topografix.com/GPX/1/0">\n'
        f" <trk>\n{segment(points)} </trk>\n</gpx>\n"
    )
    (SAMPLE / "gpx" / "logger.gpx").write_bytes(text.encode("utf-8-sig"))


def write_phone(records) -> None:
    """GPX without a namespace, with a prefix that is bound to none, and with CRLF."""
    points = [point(r, time=iso(r.time), after=EXTENSION) for r in records[:12]]
    text = f'<?xml version="1.0"?>\n<gpx version="1.1">\n <trk>\n{segment(points)} </trk>\n</gpx>\n'
    (SAMPLE / "gpx" / "phone.gpx").write_bytes(text.replace("\n", "\r\n").encode())


def write_texts(records) -> None:
    """The same records with commas; with semicolons, decimal commas and milliseconds; with tabs in UTF-16."""
    folder = SAMPLE / "table"
    commas = "".join(f"{r.user},{iso(r.time)},{r.lat},{r.lon}\n" for r in records)
    (folder / "commas.csv").write_bytes(f"uid,datetime,lat,lng\n{commas}".encode())
    rows = [f'"{r.user}";{int(r.time.timestamp() * 1000)};{r.lat};{r.lon}\r\n'.replace(".", ",") for r in records]
    (folder / "semicolons.csv").write_bytes(('"user";"time";"lat";"lon"\r\n' + "".join(rows)).encode("utf-8-sig"))
    rows = [f"{r.lat}\t{r.lon}\t{r.user}\t{iso(r.time, zone='Europe/Paris')}\r\n" for r in records]
    (folder / "tabs.tsv").write_bytes(
        b"\xff\xfe" + ("Latitude\tLongitude\tUser\tTimestamp\r\n" + "".join(rows)).encode("utf-16-le")
    )


def write_others(frame: pd.DataFrame) -> None:
    """The same records as Parquet with plain columns, as GeoParquet with native points, and as GeoJSON."""
    folder = SAMPLE / "table"
    plain = frame.rename(columns={"user": "user_id", "time": "timestamp", "lon": "longitude", "lat": "latitude"})
    table = pa.Table.from_pandas(plain, preserve_index=False).replace_schema_metadata()
    pq.write_table(table, folder / "plain.parquet", compression="zstd")
    points = gpd.GeoDataFrame(frame[["user", "time"]], geometry=gpd.points_from_xy(frame.lon, frame.lat), crs=4326)
    points.to_parquet(folder / "native.parquet", geometry_encoding="geoarrow", index=False)
    pg.write(points, folder / "points.geojson", force=True)


def main() -> None:
    """Write all samples."""
    frame = make_records()
    ana, ben, eve = (list(frame[frame["user"] == name].itertuples()) for name in NAMES)
    write_watch(ana)
    write_logger(ben)
    write_phone(eve)
    some = frame.groupby("user").head(12).reset_index(drop=True)
    write_texts(list(some.itertuples()))
    write_others(some)


if __name__ == "__main__":
    main()
