"""Make the samples in this folder: the synthetic city in the formats of the data sets, with their peculiarities."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

import promesse_geo as pg

RECORDS = 60  # per user
GEOLIFE_HEADER = (
    "Geolife trajectory",
    "WGS 84",
    "Altitude is in Feet",
    "Reserved 3",
    "0,2,255,My Track,0,0,2,8421376",
    "0",
)
CHALLENGE_HEADER = (
    *("userid", "time", "tz", "gps_time", "altitude", "longitude", "latitude", "speed", "heading"),
    *("horizontal_accuracy", "horizontal_dop", "vertical_accuracy", "vertical_dop", "speed_accuracy"),
    *("heading_accuracy", "time_since_gps_boot"),
)


class Record(NamedTuple):
    """Unix seconds and degrees."""

    second: int
    longitude: float
    latitude: float


def records_of(user: str, traces: pg.Traces) -> list[Record]:
    """Return the first records of a user of the city."""
    longitudes, latitudes = traces.coordinates()
    start = traces.offsets[traces.users.get_loc(user)]
    few = slice(start, start + RECORDS)
    seconds = traces.times[few] // 1_000_000_000
    return [
        Record(int(second), round(float(x), 6), round(float(y), 6))
        for second, x, y in zip(seconds, longitudes[few], latitudes[few], strict=True)
    ]


def write(path: Path, lines: Sequence[str], *, end: str = "\n", last_end: bool = True) -> None:
    """Write lines with a line end, which the last one may lack."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((end.join(lines) + (end if last_end else "")).encode())


def make_cabspotting(folder: Path, people: Sequence[list[Record]]) -> None:
    """Write newest first as in the original, and one cab oldest first with CRLF as in copies."""

    def line(record: Record) -> str:
        return f"{round(record.latitude, 5)} {round(record.longitude, 5)} {record.second // 600 % 2} {record.second}"

    for cab, records in zip(("abalva", "ebdoly", "oknupa"), people, strict=True):
        copy = cab == "oknupa"
        lines = [line(record) for record in records]
        write(folder / f"new_{cab}.txt", lines if copy else lines[::-1], end="\r\n" if copy else "\n")
    write(folder / "_cabs.txt", [f'<cab id="{cab}" updates="{RECORDS}"/>' for cab in ("abalva", "ebdoly", "oknupa")])


def geolife_line(record: Record, *, altitude: int = 492, latitude: float | None = None) -> str:
    """Write altitudes in feet, -777 where unknown, and days since 1899-12-30."""
    time = pd.Timestamp(record.second, unit="s")
    days = (time - pd.Timestamp("1899-12-30")) / pd.Timedelta("1D")
    place = f"{latitude or record.latitude},{record.longitude}"
    return f"{place},0,{altitude},{days:.10f},{time:%Y-%m-%d},{time:%H:%M:%S}"


def make_geolife(folder: Path, people: Sequence[list[Record]]) -> None:
    """Write CRLF, LF, a file without last line end, twice the same time, an impossible latitude, a file twice."""
    first, second, third = people

    def file(user: str, records: list[Record]) -> Path:
        return folder / "Data" / user / "Trajectory" / f"{pd.Timestamp(records[0].second, unit='s'):%Y%m%d%H%M%S}.plt"

    write(file("000", first), [*GEOLIFE_HEADER, *map(geolife_line, first[:30])], end="\r\n")
    write(file("000", first[30:]), [*GEOLIFE_HEADER, *map(geolife_line, first[30:])], end="\r\n", last_end=False)
    lines = [geolife_line(record, altitude=-777) for record in second]
    lines[7] = geolife_line(second[7], latitude=400.1667)
    lines[12:12] = lines[11:12]  # the same record twice
    lines.insert(20, geolife_line(Record(second[19].second, third[0].longitude, third[0].latitude)))  # the same time
    write(file("001", second), [*GEOLIFE_HEADER, *lines])
    mode = [pd.Timestamp(record.second, unit="s").strftime("%Y/%m/%d %H:%M:%S") for record in (second[0], second[9])]
    write(
        folder / "Data" / "001" / "labels.txt", ["Start Time\tEnd Time\tTransportation Mode", "\t".join([*mode, "bus"])]
    )
    write(file("002", first), [*GEOLIFE_HEADER, *map(geolife_line, first[:30])], end="\r\n")
    date_line = [Record(record.second, 179.98 - 359.96 * (i % 2), 21.5) for i, record in enumerate(third[:4])]
    write(file("002", third), [*GEOLIFE_HEADER, *map(geolife_line, date_line)], end="\r\n")


def make_mdc(folder: Path, people: Sequence[list[Record]]) -> None:
    r"""Write both layouts, with \N or nothing where a value is missing; the tables hold other sensors' keys too."""
    few = [records[:20] for records in people]
    lines, gps, keys = [], [], []
    for number, (user, records) in enumerate(zip(("017", "042", "101"), few, strict=True)):
        for i, (second, longitude, latitude) in enumerate(records):
            missing = "" if number == 1 else r"\N"
            x, y = (missing, missing) if i == 5 else (longitude, latitude)
            altitude = missing if i % 4 else 464.0
            accuracy = ["3.5", missing, "29.6", "1.4", "52.5", "1.8", "7.3", "73.0", "41.0"]
            lines.append("\t".join(map(str, [user, second, -3600, second, altitude, x, y, *accuracy])))
            key = 1_000 + 10 * i + number
            gps.append("\t".join(map(str, [key, second, x, y, altitude, *accuracy[:7]])))
            keys += [f"{key}\t{user}\t{second}\t-3600\tgps", f"{key + 5}\t{user}\t{second}\t-3600\twlan"]
    write(folder / "challenge" / "gps.csv", ["\t".join(CHALLENGE_HEADER), *lines])
    write(folder / "campaign" / "gps.csv", sorted(gps))
    write(folder / "campaign" / "records.csv", sorted(keys, reverse=True))


def make_samples(folder: Path) -> None:
    """Write the samples of all data sets below a folder."""
    traces = pg.make_city(users=3, days=1, as_traces=True, recorder="phone")
    people = [records_of(user, traces) for user in traces.users]
    make_cabspotting(folder / "cabspotting", people)
    make_geolife(folder / "geolife", people)
    make_mdc(folder / "mdc", people)


if __name__ == "__main__":
    make_samples(Path(__file__).parent)
