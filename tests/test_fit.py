"""FIT: records and pauses as devices write them, and what is refused."""

import gzip
import struct
import sys

import numpy as np
import pytest
from fit_encoder import RECORD, START, STOP_ALL, checksum, definition, event, fit, record

import promesse_geo as pg
from promesse_geo.io.registry import guess_format

NOON = 1_709_553_600
RIDE = [
    event(NOON, START),
    record(NOON, 45.75, 4.84),
    record(NOON + 1, 45.7501, 4.8402),
    event(NOON + 2, STOP_ALL),
    event(NOON + 600, START),
    record(NOON + 601, 45.76, 4.85),
    record(NOON + 602, -45.76, -179.85),
]


def read(folder, content: bytes, **options) -> pg.Traces:
    (folder / "ride.fit").write_bytes(content)
    return pg.read_file(folder / "ride.fit", **options, as_traces=True)


KINDS = {
    "a ride": fit(*RIDE),
    "the old header": fit(*RIDE, head=12),
    "gzip": gzip.compress(fit(*RIDE)),
    "two files in one": fit(*RIDE[:4]) + fit(*RIDE[4:]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_records_and_pauses_are_read(kind, tmp_path):
    traces = read(tmp_path, KINDS[kind])
    assert guess_format(tmp_path / "ride.fit") == "fit"
    assert traces.users.tolist() == ["ride"]
    assert (traces.times // 10**9 - NOON).tolist() == [0, 1, 601, 602]
    assert traces.segment_numbers.tolist() == [0, 0, 1, 1]
    x, y = traces.space.coordinates(traces.points)
    semicircle = 180 / 2**31
    assert np.allclose(x, [4.84, 4.8402, 4.85, -179.85], atol=semicircle)
    assert np.allclose(y, [45.75, 45.7501, 45.76, -45.76], atol=semicircle)


def test_big_endian_records_are_read(tmp_path):
    content = fit(record(NOON, 45.75, 4.84, big=True), record(NOON + 1, 45.76, 4.84, big=True), big=True)
    assert (read(tmp_path, content).times // 10**9 - NOON).tolist() == [0, 1]


def test_compressed_times_are_read(tmp_path):
    start = NOON - (NOON - 631_065_600) % 32 + 30  # two seconds before the five bits start again
    places = b"".join(
        bytes([0x80 | 3 << 5 | (30 + step) % 32]) + struct.pack("<ii", 2**28 + step, 2**27) for step in (1, 2, 3)
    )
    content = fit(record(start, 45, 4), definition(3, 20, RECORD[1:3]), places)
    assert (read(tmp_path, content).times // 10**9 - start).tolist() == [0, 1, 2, 3]


def test_events_of_others_are_no_pauses(tmp_path):
    content = fit(record(NOON, 45.75, 4.84), event(NOON, 3, of=9), record(NOON + 1, 45.76, 4.84))
    assert read(tmp_path, content).segment_numbers.tolist() == [0, 0]


def test_records_without_a_place_or_a_date_are_counted(tmp_path):
    content = fit(record(NOON, 45.75, 4.84), record(NOON + 1, None, None), record(None, 45.75, 4.84))
    content = content[:-2]
    body = content[14:] + b"\0" + struct.pack("<IiiH", 99, 1, 1, 1)  # seconds since the device was switched on
    head = struct.pack("<BBHI4sH", 14, 0x10, 2132, len(body), b".FIT", 0)
    with pytest.warns(UserWarning, match=r"1 record \(no coordinates; first at record 2 .*2 records \(no time"):
        assert read(tmp_path, head + body + struct.pack("<H", checksum(head + body))).records == 1


def test_a_folder_is_read_by_file(tmp_path):
    for name in ("a.fit", "b.FIT"):
        (tmp_path / name).write_bytes(fit(*RIDE))
    (tmp_path / "c.fit.gz").write_bytes(gzip.compress(fit(*RIDE)))
    assert pg.read_file(tmp_path, users=["b", "c"], as_traces=True).users.tolist() == ["b", "c"]
    with pytest.raises(ValueError, match="must be one of 'file', 'folder'"):
        pg.read_file(tmp_path, user="track", as_traces=True)


REFUSED = {
    "no records": (fit(event(NOON, START)), "no records of positions"),
    "indoors": (fit(record(NOON, None, None)), "no record with both a time and a location"),
    "another format": (b"user,time,lon,lat\n", "is not FIT, or cut or damaged"),
    "nothing": (b"", "is not FIT, or cut or damaged|no records"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_other_files_are_refused_with_the_reason(kind, tmp_path):
    content, words = REFUSED[kind]
    with pytest.raises(ValueError, match=words):
        read(tmp_path, content, format="fit")


def test_a_cut_file_and_one_with_a_wrong_byte_are_refused(tmp_path):
    whole = fit(*RIDE)
    damaged = [whole[:end] for end in range(13, len(whole))]
    damaged += [whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :] for at in range(14, len(whole))]
    for content in damaged:
        with pytest.raises(ValueError, match=r"ride\.fit"):
            read(tmp_path, content, format="fit")


def test_without_the_library_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    (tmp_path / "ride.fit").write_bytes(fit(*RIDE))
    monkeypatch.setitem(sys.modules, "fitdecode", None)
    with pytest.raises(ImportError, match=r"pip install promesse_geo\[formats\]"):
        pg.read_file(tmp_path / "ride.fit", as_traces=True)
