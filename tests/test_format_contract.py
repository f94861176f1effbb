"""What holds for every format of the registry: how a file is recognized and read, and what becomes of a bad one."""

import re
import warnings
from pathlib import Path

import pandas as pd
import pytest
from conftest import examples
from format_samples import SAMPLES, tarred, zipped
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import promesse_geo as pg
from promesse_geo.io.contents import NO_HEAD
from promesse_geo.io.registry import FORMATS, guess_format
from promesse_geo.plot.layers import map_zone
from promesse_geo.plot.tables import description

RECORDS_OF = {"google: visits": 2}
BY_NAME = {"cabspotting": "names of columns", "geolife": "Rename it to end with .plt"}  # what names a user
DOCUMENTED = (ValueError, TypeError, KeyError, FileNotFoundError)
every_sample = pytest.mark.parametrize("kind", SAMPLES)


def format_of(kind) -> str:
    return kind.partition(":")[0]


def saved(folder, kind, content=None, name=None) -> Path:
    """A file of a format, whose folders are kept if it has another name."""
    place, sample = SAMPLES[kind]
    path = folder / place
    path = path.with_name(name) if name else path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(sample if content is None else content)
    return path


def read(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pg.read_file(path, as_traces=True, **options)


def outcome(path, **options) -> tuple[int, str]:
    """The number of records, or 0 and the error, which is a documented one that names the file."""
    try:
        return read(path, **options).records, ""
    except Exception as caught:
        error = caught
    assert type(error) in DOCUMENTED, repr(error)
    words = str(error.args[0])
    assert path.name in words, words
    assert "promesse-geo-" not in words
    return 0, words


def test_every_format_has_a_sample():
    assert set(FORMATS) - {format_of(kind) for kind in SAMPLES} == set()  # add one to SAMPLES in format_samples.py


@every_sample
def test_one_record_is_read_by_detection_and_by_name(kind, tmp_path):
    path = saved(tmp_path, kind)
    assert guess_format(path) == format_of(kind)
    found, named = read(path), read(path, format=format_of(kind))
    assert found.records == named.records == RECORDS_OF.get(kind, 1)
    assert found.users.tolist() == named.users.tolist()
    frame = pg.read_file(path) if kind in ("table", "gpx") else found.to_frame()
    assert len(frame) == found.records
    assert frame.crs.is_geographic
    assert isinstance(frame[frame.attrs["promesse"]["time"]].dtype, pd.DatetimeTZDtype)


@every_sample
@pytest.mark.parametrize("name", ["data", "data.bin", "data.xml", "data.csv.bak"])
def test_the_content_counts_and_not_the_extension(kind, name, tmp_path):
    path = saved(tmp_path, kind, name=name)
    if kind in BY_NAME:
        records, words = outcome(path)
        assert records == 0
        assert BY_NAME[kind] in words
    else:
        assert guess_format(path) == format_of(kind)
        assert read(path).records == RECORDS_OF.get(kind, 1)


@every_sample
@pytest.mark.parametrize("pack", [zipped, tarred], ids=["zip", "tar"])
def test_an_archive_holds_the_same(kind, pack, tmp_path):
    name, content = SAMPLES[kind]
    archive = tmp_path / f"data.{'zip' if pack is zipped else 'tar.gz'}"
    archive.write_bytes(pack({name: content}))
    alone, packed = read(saved(tmp_path / "alone", kind)), read(archive)
    assert packed.users.tolist() == alone.users.tolist()
    assert packed.times.tolist() == alone.times.tolist()
    assert packed.coordinates()[0].tolist() == alone.coordinates()[0].tolist()


@every_sample
def test_times_of_all_formats_are_in_the_zone_that_is_specified(kind, tmp_path):
    path = saved(tmp_path, kind)
    plain, shown = read(path), read(path, tz="Asia/Tokyo")
    assert str(shown.time_format.zone) == "Asia/Tokyo"
    if plain.time_format.zone is not None:
        assert shown.times.tolist() == plain.times.tolist()
    assert re.search(r"^times +Asia/Tokyo$", description(shown), re.MULTILINE)
    assert map_zone(shown) == "Asia/Tokyo"


@pytest.mark.parametrize("kind", [kind for kind in SAMPLES if "user" in FORMATS[format_of(kind)].options(NO_HEAD)])
@pytest.mark.parametrize("packed", [False, True])
def test_the_folder_of_a_folder_may_name_the_user(kind, packed, tmp_path):
    name, content = SAMPLES[kind]
    name = f"Semantic Location History/2024/{name}" if kind == "google: visits" else name  # the history is the file
    members = {f"people/{user}/gps/{name}": content for user in ("p7", "p8")}
    for place, text in members.items():
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_bytes(text)
    source = tmp_path / "people"
    if packed:
        source = tmp_path / "data.zip"
        source.write_bytes(zipped(members))
    assert read(source, user="folder-2").users.tolist() == ["p7", "p8"]
    assert read(source, user="folder-2", users=["p8"]).users.tolist() == ["p8"]
    with pytest.raises(ValueError, match="user='folder-2'"):
        read(source, user="folder")


BAD = {
    "empty": lambda content: b"",
    "blanks": lambda content: b" \n" * 9,
    "no UTF-8": lambda content: b"\xff\xfe\xfd" + content,
    "no UTF-8 at the end": lambda content: content + b"\xff\xfe\xfd",
    "zeros": lambda content: bytes(len(content)),
    "cut in the middle": lambda content: content[: len(content) // 2],
    "without its last bytes": lambda content: content[:-8],
}


@every_sample
@pytest.mark.parametrize("fault", BAD)
def test_a_bad_file_is_an_error_that_names_it(kind, fault, tmp_path):
    path = saved(tmp_path, kind, BAD[fault](SAMPLES[kind][1]))
    for options in ({}, {"format": format_of(kind)}, {"errors": "skip"}):
        records, words = outcome(path, **options)
        assert records or words


@every_sample
@pytest.mark.parametrize("fault", ["empty", "zeros", "cut in the middle"])
def test_a_bad_file_beside_a_good_one_is_skipped_and_said(kind, fault, tmp_path):
    good = saved(tmp_path, kind)
    bad = good.with_name(good.name.replace(good.suffix, "9" + good.suffix, 1))
    bad.write_bytes(BAD[fault](SAMPLES[kind][1]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        traces = pg.read_file(tmp_path, format=format_of(kind), errors="skip", as_traces=True)
    assert traces.records == RECORDS_OF.get(kind, 1)
    assert any(bad.name in str(each.message) for each in caught)


@settings(examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.sampled_from(list(SAMPLES)), data=st.data(), options=st.sampled_from([{}, {"errors": "skip"}]))
def test_no_foreign_error_wherever_a_file_is_cut_or_changed(kind, data, options, tmp_path):
    content = SAMPLES[kind][1]
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, min(len(content), 4096))] * 2)))
    changed = content[:start] + data.draw(st.binary(max_size=4)) + (content[end:] if data.draw(st.booleans()) else b"")
    path = saved(tmp_path, kind, changed)
    outcome(path, **options)
    outcome(path, format=format_of(kind), **options)
    path.unlink()
