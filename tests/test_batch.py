"""Reading many files as one data set, and the samples that are stored."""

import io
import runpy
import tarfile
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import promesse_geo as pg
from promesse_geo.io import batch
from promesse_geo.io.geolife import read_geolife
from promesse_geo.io.mdc import read_mdc

SAMPLE = Path(__file__).resolve().parents[1] / "data" / "sample"


def part_of(name: str, content: bytes) -> list[batch.Part]:
    """One record a byte; the user is the name's first letter."""
    if content == b"bad":
        raise ValueError(f"{name!r} is bad.")
    numbers = np.frombuffer(content, np.uint8)
    return [batch.Part(name[0], numbers.astype(np.int64), numbers / 10, numbers / 10)]


def contents_of(**files: bytes) -> list[batch.Content]:
    return [(name, lambda content=content: content) for name, content in files.items()]


def refuse() -> bytes:
    raise PermissionError(13, "Permission denied", "c1")


class TestParts:
    def test_come_in_the_order_of_the_files_whatever_the_threads(self):
        files = [(f"a{i}", lambda i=i: bytes([i % 250])) for i in range(500)]
        parts, skipped = batch.read_parts(files, part_of, errors="raise", owner="test")
        assert [int(part.times[0]) for part in parts] == [i % 250 for i in range(500)]
        assert skipped == []

    def test_files_are_taken_as_they_are_needed(self):
        parsed, ahead, lock = [], [], threading.Lock()

        def files():
            for i in range(300):
                with lock:
                    ahead.append(i - len(parsed))
                yield f"a{i}", lambda: b"x"

        def parse(name, content):
            with lock:
                parsed.append(name)
            return part_of(name, content)

        batch.read_parts(files(), parse, errors="raise", owner="test")
        assert len(parsed) == 300
        assert max(ahead) < 200

    @pytest.mark.parametrize("error", [ValueError, PermissionError])
    def test_a_bad_file_stops_the_reading(self, error):
        files = contents_of(a=b"bad") if error is ValueError else [("c1", refuse)]
        with pytest.raises(error, match=r"'a' is bad|c1"):
            batch.read_parts(contents_of(b=b"xyz") + files, part_of, errors="raise", owner="test")

    def test_a_bad_file_is_skipped_and_said_when_asked(self):
        files = [*contents_of(a1=b"x", a2=b"bad", b=b"z"), ("c1", refuse)]
        parts, skipped = batch.read_parts(files, part_of, errors="skip", owner="test")
        assert [part.user for part in parts] == ["a", "b"]
        assert [some.name for some in skipped] == ["a2", "c1"]
        with pytest.warns(UserWarning, match=r"^test dropped 2 files \(first: 'a2' is bad\)\.$"):
            batch.warn_dropped([], skipped, owner="test")

    def test_nothing_is_returned_only_where_nothing_was_skipped(self):
        assert batch.read_parts([], part_of, errors="skip", owner="test") == ([], [])
        with pytest.raises(ValueError, match=r"None of 2 files could be read\. The first: 'a1' is bad") as caught:
            batch.read_parts(contents_of(a1=b"bad", a2=b"bad"), part_of, errors="skip", owner="test")
        assert batch.is_of_nothing_read(caught.value)
        assert len(batch.read_parts(contents_of(a1=b"bad", a2=b""), part_of, errors="skip", owner="test")[1]) == 1

    def test_errors_are_raised_or_skipped_and_nothing_else(self):
        with pytest.raises(ValueError, match="'errors' parameter of test must be one of"):
            batch.read_parts([], part_of, errors="ignore", owner="test")

    def test_a_group_is_parsed_together_and_one_by_one_where_that_fails(self):
        asked = Counter()

        def together(files):
            asked["together"] += 1
            for name, content in files:
                part_of(name, content)
            return part_of(files[0][0], b"".join(content for _, content in files))

        def alone(name, content):
            asked["alone"] += 1
            return part_of(name, content)

        files = contents_of(a1=b"x", a2=b"y", b1=b"x", b2=b"bad", b3=b"z", c=b"x")
        parts, skipped = batch.read_parts(
            files, alone, user_of=lambda name: name[0], parse_together=together, errors="skip", owner="test"
        )
        assert [(part.user, len(part.times)) for part in parts] == [("a", 2), ("b", 1), ("b", 1), ("c", 1)]
        assert [some.name for some in skipped] == ["b2"]
        assert asked == {"together": 2, "alone": 4}

    def test_parts_of_a_user_join_in_their_order(self):
        parts, _ = batch.read_parts(contents_of(b1=b"\2\1", a=b"\3", b2=b"\1"), part_of, errors="raise", owner="test")
        traces = batch.join(parts)
        assert traces.users.tolist() == ["a", "b"]
        assert traces.times.tolist() == [3, 1, 1, 2]
        assert traces.positions.tolist() == [3, 1, 2, 0]

    def test_no_parts_are_no_traces(self):
        assert len(batch.join([])) == 0


class TestWhatIsLeftOut:
    def test_a_record_counts_under_its_first_reason(self):
        latitude, longitude = np.array([0, 95, np.nan, 0, 90]), np.array([181, 200, 0, 180, -180.0])
        seconds = np.array([1, 1, 1, 0, 9_000_000_000])
        reasons = batch.impossible(latitude, longitude, seconds)
        keep, dropped = batch.drop_invalid(reasons, where=lambda row: f"row {row}")
        assert keep.tolist() == [False, False, False, False, True]
        assert [(some.reason[:9], some.count, some.first) for some in dropped] == [
            ("latitude ", 2, "row 1"),
            ("longitude", 1, "row 0"),
            ("time outs", 1, "row 3"),
        ]

    def test_one_warning_says_it_all(self):
        dropped = [
            batch.DroppedRecords("no time", 1, "line 3 of 'x'"),
            batch.DroppedRecords("no user", 2, "line 5 of 'x'"),
        ]
        words = r"^test dropped 2 records \(no time; first at line 3 of 'x'\), 2 records \(no user; .*\)\.$"
        with pytest.warns(UserWarning, match=words) as caught:
            batch.warn_dropped([*dropped, dropped[0]], [], owner="test")
        assert len(caught) == 1
        assert caught[0].filename == __file__

    def test_nothing_dropped_is_not_told(self):
        batch.warn_dropped([], [], owner="test")


class TestLines:
    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"", "empty"),
            (b" \r\n\n", "empty"),
            (b"\x1f\x8b\x08", "compressed (gzip)"),
            (b"BZh9", "compressed (bz2)"),
            (b"\xfd7zXZ\0", "compressed (xz)"),
            (b"PK\x03\x04", "zip archive"),
            ("1,2".encode("utf-16"), "UTF-16"),
            (b"1,2\n", ""),
        ],
    )
    def test_what_is_no_text_is_said(self, content, reason):
        assert reason in batch.why_no_text(content)
        assert bool(reason) == bool(batch.why_no_text(content))

    def test_empty_lines_count_but_hold_no_row(self):
        content = b"head\n\n1\r\n\r\n\n2\n3"
        assert [batch.line_of_row(content, row, skip=1) for row in range(3)] == [3, 6, 7]

    @pytest.mark.parametrize("end", [b"\n", b""], ids=["end", "no end"])
    @pytest.mark.parametrize("bad", range(9))
    def test_the_first_bad_line_is_found(self, bad, end):
        def parse(content):
            if b"x" in content:
                raise batch.pa.ArrowInvalid("x")

        lines = [b"1", b"", b"22", b"333", b"", b"4", b"5" * 100, b"6", b"7"]
        lines[bad] = b"x"
        assert batch.first_bad_line(b"\n".join(lines) + end, parse) == bad + 1
        lines[-1] = b"x"
        assert batch.first_bad_line(b"\n".join(lines) + end, parse) == bad + 1


class TestSamples:
    def test_are_small(self):
        files = [file for name in ("cabspotting", "geolife", "mdc") for file in (SAMPLE / name).rglob("*.*")]
        sizes = [file.stat().st_size for file in files]
        assert max(sizes) < 10_000

    @pytest.mark.filterwarnings("ignore:read_")
    def test_are_what_their_script_makes(self, tmp_path):
        runpy.run_path(str(SAMPLE / "make_samples.py"))["make_samples"](tmp_path)
        made = {file.relative_to(tmp_path) for file in tmp_path.rglob("*") if file.is_file()}
        for read, name in ((pg.read_cabspotting, "cabspotting"), (read_geolife, "geolife"), (read_mdc, "mdc/campaign")):
            stored, fresh = (read(folder / name, as_traces=True) for folder in (SAMPLE, tmp_path))
            assert fresh.counts.tolist() == stored.counts.tolist()
            assert fresh.times.tolist() == stored.times.tolist()
        assert all((SAMPLE / file).is_file() for file in made)

    def test_cabspotting(self):
        traces = pg.read_cabspotting(SAMPLE / "cabspotting", as_traces=True)
        assert dict(zip(traces.users, traces.counts, strict=True)) == {"abalva": 60, "ebdoly": 60, "oknupa": 60}
        assert (np.diff(traces.times)[:59] > 0).all()

    def test_geolife(self):
        words = r"^read_geolife dropped 1 record \(latitude outside ±90°; first at line 14 of '.*001.*\.plt'\)\.$"
        with pytest.warns(UserWarning, match=words):
            traces = read_geolife(SAMPLE / "geolife", as_traces=True)
        assert dict(zip(traces.users, traces.counts, strict=True)) == {"000": 60, "001": 61, "002": 34}
        assert np.abs(traces.coordinates()[0]).max() == pytest.approx(179.98)

    @pytest.mark.parametrize("layout", ["challenge", "campaign"])
    def test_mdc(self, layout):
        words = r"^read_mdc dropped 3 records \(no time, longitude or latitude; first at line \d+ of '.*gps\.csv'\)\.$"
        with pytest.warns(UserWarning, match=words):
            traces = read_mdc(SAMPLE / "mdc" / layout, as_traces=True)
        assert dict(zip(traces.users, traces.counts, strict=True)) == {"017": 19, "042": 19, "101": 19}


class TestSkippingInCabspotting:
    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"", "it is empty"),
            (b"37.7 -122.3 0 1213084687\n37.7 -122", "line 2 is not four numbers"),
            (b"\x1f\x8b\x08 packed", r"it is compressed \(gzip\); decompress it"),
            ("37.7 -122.3 0 1213084687".encode("utf-16"), "it is in UTF-16; save it as UTF-8"),
        ],
        ids=["empty", "cut", "compressed", "UTF-16"],
    )
    def test_a_bad_file_is_named_or_skipped(self, tmp_path, content, reason):
        (tmp_path / "new_a.txt").write_bytes(content)
        (tmp_path / "new_b.txt").write_bytes(b"37.7 -122.3 0 1213084687\n")
        with pytest.raises(ValueError, match=rf"new_a\.txt' is not in the format of Cabspotting: {reason}"):
            pg.read_cabspotting(tmp_path)
        with pytest.warns(
            UserWarning, match=rf"^read_cabspotting dropped 1 file \(first: '.*new_a\.txt' is not .*{reason}"
        ):
            assert pg.read_cabspotting(tmp_path, errors="skip")["user"].tolist() == ["b"]
        with pytest.raises(ValueError, match=rf"^None of 1 file could be read\. The first: .*new_a\.txt' .*{reason}"):
            pg.read_cabspotting(tmp_path / "new_a.txt", errors="skip")

    def test_a_byte_order_mark_is_read(self, tmp_path):
        (tmp_path / "new_b.txt").write_bytes(b"\xef\xbb\xbf37.7 -122.3 0 1213084687\n")
        assert len(pg.read_cabspotting(tmp_path)) == 1

    def test_an_archive_is_kept_up_to_where_it_is_cut(self, tmp_path):
        path = tmp_path / "cabs.tar"
        with tarfile.open(path, "w") as archive:
            for cab in "ab":
                member = tarfile.TarInfo(f"cabspottingdata/new_{cab}.txt")
                member.size = 25
                archive.addfile(member, io.BytesIO(b"37.7 -122.3 0 1213084687\n"))
        path.write_bytes(path.read_bytes()[:1540])
        with pytest.raises(ValueError, match="is cut or damaged"):
            pg.read_cabspotting(path)
        with pytest.warns(UserWarning, match=r"dropped 1 file \(first: The archive '.*' is cut or damaged"):
            assert pg.read_cabspotting(path, errors="skip")["user"].tolist() == ["a"]

    def test_a_folder_named_like_a_cab_does_not_name_the_cab(self, tmp_path):
        folder = tmp_path / "new_data"
        folder.mkdir()
        (folder / "new_b.txt").write_bytes(b"37.7 -122.3 0 1213084687\n")
        assert pg.read_cabspotting(folder)["user"].tolist() == ["b"]


def test_no_thread_outlives_reading(tmp_path, run_fresh):
    (tmp_path / "a.csv").write_text("user,time,lon,lat\nana,2024-03-04T08:00:00Z,4,45\n", encoding="utf-8")
    (tmp_path / "new_a.txt").write_text("37.75 -122.39 0 1213084600\n", encoding="utf-8")
    code = (
        "import sys, threading, promesse_geo as pg\n"
        "pg.read_file(sys.argv[1] + '/a.csv', as_traces=True)\n"
        "pg.read_file(sys.argv[1] + '/new_a.txt', as_traces=True)\n"
        "print([thread.name for thread in threading.enumerate()], len(threading.enumerate()))\n"
    )
    done = run_fresh(code, tmp_path, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['MainThread'] 1\n"
