"""Which files of MDC a source stands for, and in which of its two layouts they are."""

import os
from collections.abc import Sequence
from pathlib import Path

from promesse_geo.io.sources import check_exists, files_inside
from promesse_geo.messages import counted, warn

HEADER = (
    *("userid", "time", "tz", "gps_time", "altitude", "longitude", "latitude", "speed", "heading"),
    *("horizontal_accuracy", "horizontal_dop", "vertical_accuracy", "vertical_dop", "speed_accuracy"),
    *("heading_accuracy", "time_since_gps_boot"),
)
GPS = (
    *("db_key", "time", "longitude", "latitude", "altitude", "speed", "speed_accuracy", "horizontal_dop"),
    *("horizontal_accuracy", "vertical_dop", "vertical_accuracy", "time_since_gps_boot"),
)
_ENDINGS = (".csv", ".tsv", ".txt")


def find_tables(sources: Sequence[str | os.PathLike[str]]) -> tuple[list[Path], list[Path]]:
    """Return the files with places, and the tables of records among the paths."""
    found: list[Path] = []
    for path in map(Path, sources):
        check_exists(path)
        found += _in_folder(path) if path.is_dir() else [path]
    twice = len(found) - len({path.resolve() for path in found})
    if twice:
        raise ValueError(f"{counted(twice, 'file')} would be read twice: the paths in 'source' overlap.")
    inside = {file.resolve() for path in sources for file in files_inside(path, _is_gps) if file.is_file()}
    below = len(inside - {path.resolve() for path in found})
    if below:
        warn(f"Not read: {counted(below, 'GPS file')} in folders below those in 'source'. Name these, too.")
    records = [path for path in found if is_records(path)]
    files = [path for path in found if path not in records]
    if records and not files:
        raise FileNotFoundError(f"{str(records[0])!r} holds no places: they stand in gps.csv.")
    return files, records


def is_table(file: Path) -> bool:
    """Whether a file's name is one of a table, and not hidden."""
    return file.name.lower().endswith(_ENDINGS) and not file.name.startswith(".")


def _is_gps(file: Path) -> bool:
    return "gps" in file.name.lower() and is_table(file)


def _in_folder(folder: Path) -> list[Path]:
    """Return the files named after GPS, or else all that are no tables of records, or else these."""
    files = sorted(file for file in folder.iterdir() if is_table(file))
    named = [file for file in files if _is_gps(file)]
    others = [file for file in files if not is_records(file)]
    if not files:
        raise FileNotFoundError(f"The folder {str(folder)!r} holds no file of MDC (gps.csv, or others, .csv too).")
    _check_layouts(folder, others if len(others) < len(files) else [])
    return named or others or files


def _check_layouts(folder: Path, files: Sequence[Path]) -> None:
    """Refuse files of the challenge beside the tables of the campaign, which may hold the same records."""
    firsts = {}
    for file in files:
        if file.is_file() and os.access(file, os.R_OK):  # else it is told when it is read
            with file.open("rb") as lines:
                firsts[file.name] = fields(lines.readline(1 << 16))
    challenge = [name for name, first in firsts.items() if not set(first).isdisjoint(HEADER)]
    campaign = [name for name, first in firsts.items() if len(first) == len(GPS) and name not in challenge]
    if challenge and campaign:
        raise ValueError(
            f"The folder {str(folder)!r} holds both layouts of MDC, which may hold the same records: with a header "
            f"({challenge[0]!r}) and, beside a table of records, without one ({campaign[0]!r}). Name the files to read."
        )


def fields(line: bytes) -> tuple[str, ...]:
    """Return the fields of a line, between tabs."""
    return tuple(line.removeprefix(b"\xef\xbb\xbf").decode(errors="replace").rstrip("\r\n").split("\t"))


def is_records(path: Path) -> bool:
    """Whether a file's name is that of a table of records, which tells the users."""
    return "record" in path.name.lower() and "gps" not in path.name.lower()
