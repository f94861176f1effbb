"""Which kind of table a file is, by its first bytes."""

from pathlib import Path

from promesse_geo.io.compressed import COMPRESSIONS, Head, read_head
from promesse_geo.io.gpx import is_gpx
from promesse_geo.io.sources import check_is_file

_KINDS = {b"PAR1": "parquet", b"SQLite format 3": "geopackage"}
_OTHERS = {
    b"PK\x03\x04": "is a zip archive or an Excel workbook. Extract it, or save the sheet as CSV",
    b"\xfd7zXZ": "is compressed with xz. Decompress it",
    b"\xd0\xcf\x11\xe0": "is an Excel workbook. Save the sheet as CSV",
}
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def kind_of(head: Head) -> str:
    """Return "parquet", "geopackage", "geojson" or "csv"; empty if a file with these first bytes is no table."""
    if why_no_table(head):
        return ""
    stored = head.stored
    json = stored.lstrip(b"\xef\xbb\xbf \r\n\t").startswith((b"{", b"\x1e"))
    known = next((kind for magic, kind in _KINDS.items() if stored.startswith(magic)), None)
    return known or ("geojson" if json else "csv")


def why_no_table(head: Head) -> str:
    """Return why a file with these first bytes is no table; empty if it may be one."""
    stored = head.stored
    if not stored:
        return "is empty"
    for magic, reason in _OTHERS.items():
        if stored.startswith(magic):
            return reason
    if stored.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<"):
        cure = ". Read it with read_gpx (--format gpx)" if is_gpx(head, "") else ""
        return f"is XML, not a table{cure}"
    if b"\0" in stored and not stored.startswith((*_UTF16, *COMPRESSIONS, *_KINDS)):
        return "is neither in a known format nor text in UTF-8 or UTF-16"
    return ""


def is_table(head: Head, name: str) -> bool:
    """Return whether a file with these first bytes may be a table."""
    return not why_no_table(head)


def table_kind(path: Path) -> str:
    """Return the kind of a table, or raise ValueError if it is another file."""
    check_is_file(path)
    head = read_head(path)
    if reason := why_no_table(head):
        raise ValueError(f"{str(path)!r} {reason}.")
    return kind_of(head)
