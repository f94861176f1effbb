"""Files found in folders and by patterns: what cannot be read is told, and what is packed stays within bounds."""

import gzip
import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import promesse_geo as pg
from promesse_geo.io import contents
from promesse_geo.io.contents import read_bytes
from promesse_geo.io.sources import find_files
from promesse_geo.io.table import read_table

TEXT = "user,time,lon,lat\nana,2024-03-04T08:00:00Z,4.5,45.5\n"
needs_links = pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")


def folder_of(path, *names):
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(TEXT)
    return path


def found(source) -> list[str]:
    return [path.name for path in find_files(source, endings=(".csv",), owner="test")]


def assert_told(folder, words):
    """One file is read; something beside it is an error, or one of the files left out."""
    with pytest.raises((ValueError, OSError), match=words):
        read_table(folder)
    with pytest.warns(UserWarning, match=rf"^read_table dropped 1 file \(first: .*{words}") as said:
        assert read_table(folder, errors="skip", as_traces=True).records == 1
    assert len(said) == 1


@needs_links
@pytest.mark.parametrize("pattern", ["", "*.csv"])
def test_a_link_to_nothing_is_told(pattern, tmp_path):
    folder_of(tmp_path, "a.csv")
    (tmp_path / "b.csv").symlink_to(tmp_path / "gone.csv")
    assert_told(tmp_path / pattern, r"b\.csv' is a link to nothing")
    with pytest.raises(FileNotFoundError, match="is a link to nothing"):
        read_table(tmp_path / "b.csv")


def test_a_folder_that_cannot_be_entered_is_told(tmp_path, lock):
    lock(folder_of(tmp_path, "a.csv", "locked/b.csv") / "locked")
    assert_told(tmp_path, "Permission denied: '.*locked'")


def test_a_folder_named_like_a_file_is_told_or_holds_files(tmp_path):
    folder_of(tmp_path, "a.csv")
    (tmp_path / "b.csv").mkdir()
    assert_told(tmp_path, r"b\.csv' is a folder\. Pass a file")
    (tmp_path / "b.csv" / "part-0.csv").write_text(TEXT)
    assert found(tmp_path) == ["a.csv", "part-0.csv"]


def test_a_folder_that_fits_a_pattern_is_told(tmp_path):
    folder_of(tmp_path, "2024-a.csv", "2024-05/b.csv")
    assert_told(tmp_path / "2024*", "2024-05' is a folder")
    assert found(os.path.join(tmp_path, "**")) == ["b.csv", "2024-a.csv"]
    assert found(tmp_path / "**" / "*.csv") == ["b.csv", "2024-a.csv"]


@needs_links
def test_links_to_folders_are_followed_once(tmp_path):
    folder_of(tmp_path, "data/a.csv", "data/sub/b.csv", "else/c.csv")
    (tmp_path / "data" / "latest").symlink_to(tmp_path / "data" / "sub")
    (tmp_path / "data" / "sub" / "up").symlink_to(tmp_path / "data")
    (tmp_path / "data" / "more").symlink_to(tmp_path / "else")
    (tmp_path / "else" / "round").symlink_to(tmp_path / "else")
    assert found(tmp_path / "data") == ["a.csv", "c.csv", "b.csv"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_is_told_and_not_waited_for(tmp_path):
    os.mkfifo(folder_of(tmp_path, "a.csv") / "b.csv")
    assert_told(tmp_path, r"b\.csv' is a pipe or a device")
    (tmp_path / "a.csv").unlink()
    (tmp_path / "b.csv").rename(tmp_path / "b.txt")  # which no format claims
    with pytest.raises(ValueError, match=r"b\.txt' is a pipe or a device"):
        pg.read_file(tmp_path)


def test_what_grows_beyond_measure_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.csv.gz"
    lines = TEXT + "ana,2024-03-04T08:00:00Z,4.5,45.5\n" * 50_000
    path.write_bytes(gzip.compress(lines.encode()))
    assert read_table(path, as_traces=True).records == 50_001
    monkeypatch.setattr(contents, "_SMALL", 1 << 20)
    with pytest.raises(ValueError, match=r"a\.csv\.gz': it would take more than 0 GiB"):
        read_table(path)
    with pytest.raises(ValueError, match=r"a\.csv\.gz': it would take more than 0 GiB"):
        read_bytes(path)


def test_what_is_packed_is_read_whole(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(gzip.compress(TEXT.encode()) + gzip.compress(b"more"))
    assert read_bytes(path) == TEXT.encode() + b"more"


@given(text=st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=99))
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_recognized_without_a_mark(text, encoding):
    assert contents.bare_utf16(text.encode(encoding)) == encoding
    assert contents.bare_utf16(text.encode()) == ""
    assert contents.bare_utf16(f"{text}\0".encode(encoding)) == ""


@given(st.binary(max_size=38) | st.binary(max_size=19).map(lambda half: b"".join(bytes([each, 0]) for each in half)))
def test_only_zeros_in_every_second_place_are_utf16(content):
    found = contents.bare_utf16(content)
    pairs = content[: len(content) // 2 * 2]
    halves = {"utf-16-le": pairs[1::2], "utf-16-be": pairs[::2]}
    assert not found or not any(halves[found])
