"""What kind of table a file is, told by its first bytes."""

from pathlib import Path

from promesse_geo.io.gpx_points import IS_GPX
from promesse_geo.io.sources import check_is_file

_NO_TABLES = {
    b"PK\x03\x04": "a zip archive or a workbook of Excel. Unpack it, or save the sheet as CSV",
    b"\xfd7zXZ": "packed by xz. Unpack it",
    b"\xd0\xcf\x11\xe0": "a workbook of Excel. Save the sheet as CSV",
}


def table_kind(path: Path) -> str:
    """Return "parquet", "geopackage", "geojson" or "csv", from the first bytes."""
    check_is_file(path)
    with path.open("rb") as file:
        head = file.read(1024)
    if not head:
        raise ValueError(f"{str(path)!r} is empty.")
    for magic, words in _NO_TABLES.items():
        if head.startswith(magic):
            raise ValueError(f"{str(path)!r} is {words}.")
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"SQLite format 3"):
        return "geopackage"
    start = head.lstrip(b"\xef\xbb\xbf \r\n\t")
    if start.startswith(b"<"):
        cure = " Read it with read_gpx (--format gpx)." if IS_GPX.search(start) else ""
        raise ValueError(f"{str(path)!r} is XML, not a table.{cure}")
    return "geojson" if start.startswith((b"{", b"\x1e")) else "csv"
