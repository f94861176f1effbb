"""Name files that no reader takes for what they are, and how to convert them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

_XML = re.compile(rb"(?:\xef\xbb\xbf)?\s*<")
_OGR = "ogr2ogr points.gpkg FILE"


class _Kind(NamedTuple):
    """Files that begin with certain bytes: what they are, and how to convert them."""

    start: re.Pattern[bytes]
    label: str
    remedy: str


def _babel(name: str) -> str:
    return f"Convert it to GPX, as in: gpsbabel -i {name} -f FILE -o gpx -F track.gpx"


def _kind(start: bytes, label: str, remedy: str) -> _Kind:
    return _Kind(re.compile(start, re.DOTALL), label, remedy)


_PICTURE = (
    "Write the locations of pictures as CSV, as in: exiftool -csv -n -GPSDateTime -GPSLongitude -GPSLatitude FOLDER"
)
_KINDS = (
    _kind(
        rb"\s*\[\s*\"<class 'skmob",
        "a JSON file of scikit-mobility",
        "Write it as CSV, as in: skmob.read('FILE').to_csv('table.csv', index=False)",
    ),
    _kind(
        rb"(?:\xef\xbb\xbf)?\s*\[\s*(?:[{\]\[]|\"[^\"]*\"\s*,)",
        "a JSON array of an unknown kind",
        "Write it as CSV, as in: pandas.read_json(…).to_csv(…)",
    ),
    _kind(rb"\xd0\xcf\x11\xe0", "an old Excel workbook or Word document", "Save the table as CSV."),
    _kind(rb"MATLAB \d", "a MATLAB file", "Write it as CSV, as in: writetable(T, 'table.csv')"),
    _kind(
        rb"\x89HDF\r\n\x1a\n",
        "an HDF5 file",
        "Write the table as Parquet or CSV, as in: pandas.read_hdf(…).to_parquet(…)",
    ),
    _kind(
        rb"CDF[\x01\x02\x05]",
        "a NetCDF file",
        "Write the table as CSV, as in: xarray.open_dataset(…).to_dataframe().to_csv(…)",
    ),
    _kind(rb"\x89PNG|\xff\xd8\xff|GIF8|II\*\0|MM\0\*|RIFF.{4}WEBP", "an image", _PICTURE),
    _kind(rb"%PDF-", "a PDF document", "Ask for the data as CSV."),
    _kind(rb"\{\\rtf", "a text document (RTF)", "Save it as plain text."),
    _kind(
        rb"\x80[\x02-\x05](?:\x95|[\]\}cq(KX])",
        "a pickle",
        "Open it in Python, and write it as Parquet: frame.to_parquet(…)",
    ),
    _kind(rb"FEA1", "an old Feather file", "Write it as Parquet: pandas.read_feather(…).to_parquet(…)"),
    _kind(rb"ARROW1\0\0", "an Arrow or Feather file", "Write it as Parquet: pandas.read_feather(…).to_parquet(…)"),
    _kind(rb"RD[AX][23]\n|X\n\0\0\0", "a file of R", "Write it as CSV, as in: write.csv(data, 'table.csv')"),
    _kind(rb"\$FL[23]@", "an SPSS file", "Save it as CSV."),
    _kind(rb"<stata_dta>", "a Stata file", "Write it as CSV: pandas.read_stata(…).to_csv(…)"),
    _kind(rb"MsRcf|MsRcd", "a Garmin MapSource database (.gdb)", _babel("gdb")),
    _kind(rb"OziExplorer", "an OziExplorer file", _babel("ozi")),
    _kind(rb"INDEX,TAG,DATE,TIME,LATITUDE N/S", "a file of a Columbus logger", _babel("v900")),
    _kind(rb".{0,64}(?:DSOMGPS|HOLUX)", "a file of a GPS logger", _babel("m241-bin")),
    _kind(rb"PGDMP", "a dump of PostgreSQL", "Restore it, and export the table as CSV."),
    _kind(rb".{257}ustar", "a tar archive", "Read it with read_file."),
    _kind(rb"7z\xbc\xaf\x27\x1c|Rar!\x1a\x07", "an archive (7z or RAR)", "Extract it, or pack it as zip."),
    _kind(rb"\x1f\x9d|\x1f\xa0", "compressed by compress", "Decompress it."),
    _kind(rb"\x04\x22\x4d\x18", "compressed (lz4)", "Decompress it."),
    _kind(rb"ORC.{0,512}[\0-\x08]", "an ORC file", "Write it as Parquet: pandas.read_orc(…).to_parquet(…)"),
    _kind(rb"Obj\x01", "an Avro file", "Write it as Parquet."),
    _kind(rb".{4}OSMHeader|.{0,16}OSMHeader", "an OpenStreetMap file", _babel("osm")),
    _kind(rb"bplist00", "a property list of Apple", "Convert it, as in: plutil -convert json FILE"),
    _kind(rb"\x7fELF|MZ.{0,512}This program", "a program", "Pass the file of the data."),
)
_XML_KINDS = (
    (re.compile(rb"<(?:\w+:)?gpx\b", re.IGNORECASE), "GPX", "Read it with read_gpx (--format gpx)."),
    (re.compile(rb"<(?:\w+:)?kml\b", re.IGNORECASE), "KML", "Read it with read_file (--format kml)."),
    (re.compile(rb"<(?:\w+:)?TrainingCenterDatabase\b"), "TCX", "Read it with read_file (--format tcx)."),
    (re.compile(rb"<osm\b"), "an OpenStreetMap file", _babel("osm")),
    (
        re.compile(rb"<HealthData\b|HKExport"),
        "an export of Apple Health",
        "Its routes are the GPX files in workout-routes.",
    ),
    (re.compile(rb"<loc\b"), "a Geocaching LOC file", _babel("geo")),
    (re.compile(rb"<!doctype html|<html", re.IGNORECASE), "a web page", "Download the file itself."),
    (re.compile(rb"<svg\b"), "an image", "Ask for the data."),
    (re.compile(rb"<(?:\w+:)?(?:FeatureCollection|WFS_)"), "XML", f"Convert it, as in: {_OGR}"),
)
_OFFICE = {
    "xl/": "an Excel workbook. Save the sheet as CSV",
    "word/": "a Word document. Save the table as CSV",
    "ppt/": "a presentation. Save the table as CSV",
    "content.xml": "an OpenDocument file. Save the sheet as CSV",
}


def name_kind(start: bytes) -> str:
    """Return what a file with these first bytes is, and how to convert it; empty if it is not known.

    Parameters
    ----------
    start : bytes
        The first 4096 bytes.

    Examples
    --------
    >>> name_kind(b"%PDF-1.7")
    'is a PDF document. Ask for the data as CSV'
    """
    for kind in _KINDS:
        if kind.start.match(start):
            return f"is {kind.label}. {kind.remedy.rstrip('.')}"
    text = start.replace(b"\0", b"").removeprefix(b"\xff\xfe").removeprefix(b"\xfe\xff")
    if not _XML.match(text):
        return ""
    for pattern, label, remedy in _XML_KINDS:
        if pattern.search(text):
            return f"is XML ({label}), not a table. {remedy.rstrip('.')}"
    return f"is XML of an unknown kind, not a table. If GDAL reads it, convert it, as in: {_OGR}"


def name_office(names: Sequence[str]) -> str:
    """Return what a zip archive with such members is if it is a document, as `name_kind` does; else an empty text."""
    if not {"[Content_Types].xml", "mimetype"} & set(names):
        return ""
    return next(
        (f"is {words}" for start, words in _OFFICE.items() if any(name.startswith(start) for name in names)), ""
    )
