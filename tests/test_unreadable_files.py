"""What is not read is named for what it is, with a remedy that works, and no foreign exception passes."""

import io
import pickle
import warnings
import zipfile

import pytest
from conftest import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import promesse_geo as pg
from promesse_geo.io.registry import FORMATS
from promesse_geo.io.table import ENDINGS


def office(folder) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(f"{folder}/main.xml", "<main/>")
    return packed.getvalue()


KINDS = {
    "book.xlsx": (office("xl"), "Excel workbook", "CSV"),
    "letter.docx": (office("word"), "Word document", "CSV"),
    "old.xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "Excel workbook", "CSV"),
    "data.mat": (b"MATLAB 5.0 MAT-file, Platform: GLNXA64" + bytes(99), "MATLAB", "CSV"),
    "data.h5": (b"\x89HDF\r\n\x1a\n" + bytes(99), "HDF5", "Parquet"),
    "data.nc": (b"CDF\x01" + bytes(99), "NetCDF", "CSV"),
    "photo.jpg": (b"\xff\xd8\xff\xe0" + bytes(99), "image", "exiftool"),
    "map.png": (b"\x89PNG\r\n\x1a\n" + bytes(99), "image", "exiftool"),
    "paper.pdf": (b"%PDF-1.7\n", "PDF", "CSV"),
    "frame.pkl": (pickle.dumps({"a": 1}), "pickle", "Parquet"),
    "frame.feather": (b"ARROW1\0\0" + bytes(99), "Arrow", "Parquet"),
    "track.plt": (b"OziExplorer Track Point File Version 2.1\r\nWGS 84\r\n", "OziExplorer", "gpsbabel -i ozi"),
    "garmin.gdb": (b"MsRcf\0D" + bytes(99), "Garmin MapSource", "gpsbabel -i gdb"),
    "page.csv": (b"<!DOCTYPE html><html><body>Not found</body></html>", "web page", "Download"),
    "other.xml": (b"<?xml version='1.0'?><a/>", "XML", "ogr2ogr"),
    "some.json": (b'{"kind": "settings", "colour": "blue"}', "JSON, but not GeoJSON", "CSV"),
    "areas.json": (b'{"type": "Topology", "arcs": [[[1, 2]]], "objects": {}}', "TopoJSON", "ogr2ogr"),
    "areas.geojson": (b'{"arcs": [], "objects": {}, "type": "Topology"}', "TopoJSON", "ogr2ogr"),
    "far.json": (
        b'{"about": "' + b"a" * 5000 + b'", "type": "Topology", "arcs": [], "objects": {}}',
        "TopoJSON",
        "ogr2ogr points.gpkg TopoJSON:",
    ),
    "esri.json": (
        b'{"features": [{"attributes": {"user": "a"}, "geometry": {"x": 1, "y": 2}}]}',
        "Esri JSON",
        "ogr2ogr points.gpkg ESRIJSON:",
    ),
    "twice.json": (
        b'{"type": "FeatureCollection",\n "features": []}\n{"type": "FeatureCollection",\n "features": []}\n',
        "not a single JSON text",
        "one feature per line",
    ),
    "lines.json": (b'{"a": 1, "b": 2}\n{"a": 2, "b": 3}\n', "JSON, but not GeoJSON", "CSV"),
    "array.json": (b'[{"a": 1}, {"a": 2}]', "JSON array", "CSV"),
    "values.json": (b'["a", 4.8, 45.7]', "JSON array", "CSV"),
    "tdf.json": (
        b"""["<class 'skmob.core.trajectorydataframe.TrajDataFrame'>", "{\\"columns\\":[\\"uid\\"]}", {}, []]""",
        "scikit-mobility",
        "skmob.read",
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_file_is_named_for_what_it_is(tmp_path, name):
    content, label, remedy = KINDS[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=label) as caught:
        pg.read_file(tmp_path / name, as_traces=True)
    words = str(caught.value)
    assert repr(str(tmp_path / name)) in words
    assert remedy in words
    assert "damaged" not in words
    assert "--format" not in words


STARTS = [
    *(content[:16] for content, _, _ in KINDS.values()),
    *(b"", b"PAR1", b"SQLite format 3\0", b"fgb\3fgb\0", b"\0\0'\x0a" + bytes(20), b"!table\n!version 300\n"),
    *(b"Version 300\nCharset ", b"# @VGMT1.0 @GPOINT\n", b"<gml xmlns='http://www.opengis.net/gml'>", b"<JCSDataFile>"),
    *(b'{"type": "FeatureCollection", "features": [', b'{"type": "Topology", ', b'{"esriGeometry": ', b"\x1e{"),
    *(b"\x1f\x8b\x08\0", b"BZh9", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"PK\3\4", b"PK\5\6", b"<gpx>", b"<kml>"),
    *(b"user,time,lon,lat\n", b"\xff\xfe", b"\xef\xbb\xbf", b"$GPRMC,", b"AXXX\r\n"),
]
SUFFIXES = sorted({*ENDINGS, *(pattern.replace("*", "x") for form in FORMATS.values() for pattern in form.files), ""})


@settings(examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.sampled_from(STARTS), rest=st.binary(max_size=200), suffix=st.sampled_from(SUFFIXES), skips=st.booleans()
)
def test_whatever_a_file_holds_the_error_is_ours(tmp_path, start, rest, suffix, skips):
    path = tmp_path / f"data{suffix}"
    path.write_bytes(start + rest)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error = error_of(lambda: pg.read_file(path, errors="skip" if skips else "raise", as_traces=True))
    path.unlink()
    assert error is None or path.stem in str(error)
    assert "promesse-geo-" not in str(error)


def error_of(call) -> Exception | None:
    """The error of a call, if it is one of those that the command line shows."""
    try:
        call()
    except (ValueError, OSError, TypeError, KeyError) as error:
        return error
    return None


def test_a_table_whose_first_column_begins_as_another_format_is_a_table(tmp_path):
    path = tmp_path / "whales.csv"
    path.write_text("ORCA,time,lat,lon\na,2024-03-04T08:00:00Z,45.7,4.8\n")
    assert len(pg.read_file(path, user="ORCA")) == 1
