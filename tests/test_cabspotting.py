"""The Cabspotting reader, on small files in the true format and on the real archive."""

import gzip
import io
import re
import tarfile
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from geopandas.testing import assert_geodataframe_equal

import promesse_geo as pg
from promesse_geo.io import contents

# Newest first, decimals with trailing zeros cut, as in the original.
CABS = {
    "abboip": ["37.75134 -122.39488 0 1213084687", "37.75136 -122.395 1 1213084659", "37.8 -122.3946 0 1213084540"],
    "abcoij": ["37.75149 -122.39447 0 1213084720"],
    "udwadla": ["37.6 -122.4 1 1211000060", "37.61 -122.41 1 1211000000"],
}
RECORDS = [(cab, *map(float, line.split())) for cab in CABS for line in reversed(CABS[cab])]
RULE = "line {} is not four numbers: latitude, longitude, occupancy"


def content_of(lines, *, end="\n") -> bytes:
    return "".join(line + end for line in lines).encode()


def write_folder(folder: Path, *, reverse=False, end="\n") -> Path:
    folder.mkdir()
    for cab, lines in CABS.items():
        (folder / f"new_{cab}.txt").write_bytes(content_of(lines[::-1] if reverse else lines, end=end))
    (folder / "_cabs.txt").write_text('<cab id="abboip" updates="3"/>\n')
    (folder / "README").write_text("Mobility traces of taxi cabs\n")
    return folder


def write_archive(path: Path, *, cabs=CABS, mode="w:gz") -> Path:
    members = {"_cabs.txt": b'<cab id="abboip" updates="3"/>\n', "README": b"Mobility traces\n"}
    members |= {f"new_{cab}.txt": content_of(lines) for cab, lines in cabs.items()}
    with tarfile.open(path, mode) as archive:
        folder = tarfile.TarInfo("cabspottingdata")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, content in members.items():
            member = tarfile.TarInfo(f"cabspottingdata/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def write_linked(path: Path, kind: bytes, *, target: str) -> Path:
    write_archive(path, mode="w")
    with tarfile.open(path, "a") as archive:
        link = tarfile.TarInfo("cabspottingdata/new_link.txt")
        link.type, link.linkname = kind, target
        archive.addfile(link)
    path.write_bytes(gzip.compress(path.read_bytes()))
    return path


def write_cab(folder: Path, *lines: str, cab="abboip") -> Path:
    path = folder / f"new_{cab}.txt"
    path.write_bytes(content_of(lines))
    return path


def outcome_of(path: Path) -> str:
    """How many records are read, or the words of the error."""
    try:
        return f"{pg.read_cabspotting(path, as_traces=True).records} records"
    except ValueError as error:
        return str(error)


def check_all(frame) -> None:
    """Everything of CABS, in order."""
    assert list(frame.columns) == ["user", "time", "geometry"]
    assert frame.crs == 4326
    assert str(frame["time"].dt.tz) == "UTC"
    seconds = pd.DatetimeIndex(frame["time"]).as_unit("s").asi8
    x, y = frame.geometry.x, frame.geometry.y
    assert list(zip(frame["user"], y, x, seconds, strict=True)) == [
        (cab, latitude, longitude, second) for cab, latitude, longitude, _, second in RECORDS
    ]


class TestWhatIsRead:
    @pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
    @pytest.mark.parametrize("reverse", [False, True], ids=["newest first", "oldest first"])
    def test_a_folder(self, tmp_path, reverse, end):
        check_all(pg.read_cabspotting(write_folder(tmp_path / "cabspottingdata", reverse=reverse, end=end)))

    def test_a_folder_above_it(self, tmp_path):
        write_folder(tmp_path / "cabspottingdata")
        check_all(pg.read_cabspotting(tmp_path))

    def test_files_at_any_depth(self, tmp_path):
        folder = write_folder(tmp_path / "cabspottingdata")
        (folder / "more" / "still").mkdir(parents=True)
        (folder / "new_abboip.txt").rename(folder / "more" / "new_abboip.txt")
        (folder / "new_abcoij.txt").rename(folder / "more" / "still" / "new_abcoij.txt")
        check_all(pg.read_cabspotting(tmp_path))

    @pytest.mark.parametrize(("name", "mode"), [("c.tar.gz", "w:gz"), ("c.tar", "w"), ("c.tar.xz", "w:xz")])
    def test_an_archive(self, tmp_path, name, mode):
        check_all(pg.read_cabspotting(write_archive(tmp_path / name, mode=mode)))

    def test_a_path_as_text(self, tmp_path):
        check_all(pg.read_cabspotting(str(write_archive(tmp_path / "cabspottingdata.tar.gz"))))

    def test_one_file(self, tmp_path):
        frame = pg.read_cabspotting(write_folder(tmp_path / "cabs") / "new_udwadla.txt")
        assert frame["user"].tolist() == ["udwadla"] * 2
        assert frame["time"].is_monotonic_increasing

    def test_several_files_in_any_order(self, tmp_path):
        folder = write_folder(tmp_path / "cabs")
        check_all(pg.read_cabspotting([folder / f"new_{cab}.txt" for cab in ("udwadla", "abboip", "abcoij")]))

    def test_a_file_without_a_last_line_end(self, tmp_path):
        path = write_cab(tmp_path)
        path.write_bytes(content_of(CABS["abboip"]).rstrip())
        assert len(pg.read_cabspotting(path)) == 3
        lines = [f"37.75 -122.39 0 {seconds}" for seconds in (1_000_000_060, 999_999_999, 999_999_939)]
        path.write_bytes(content_of(lines).rstrip())
        assert len(pg.read_cabspotting(path)) == 3

    @pytest.mark.parametrize(
        "users", [["udwadla"], {"udwadla", "abboip"}, iter(["abcoij"])], ids=["1", "2", "iterator"]
    )
    def test_a_few_cabs(self, tmp_path, users):
        folder, archive = write_folder(tmp_path / "cabs"), write_archive(tmp_path / "c.tar.gz")
        users = list(users)
        frame = pg.read_cabspotting(folder, users=iter(users))
        assert sorted(set(frame["user"])) == sorted(users)
        assert_geodataframe_equal(frame, pg.read_cabspotting(archive, users=users))

    def test_as_traces(self, tmp_path):
        archive = write_archive(tmp_path / "c.tar.gz")
        traces = pg.read_cabspotting(archive, as_traces=True)
        assert traces.users.tolist() == sorted(CABS)
        assert traces.counts.tolist() == [3, 1, 2]
        assert_geodataframe_equal(traces.to_frame(), pg.read_cabspotting(archive))

    def test_records_of_one_second_keep_their_order(self, tmp_path):
        path = write_cab(tmp_path, "37.2 -122 0 1213084540", "37.1 -122 0 1213084540", "37 -122 0 1213084539")
        assert pg.read_cabspotting(path).geometry.y.tolist() == [37, 37.2, 37.1]


class TestWhatIsWrong:
    @pytest.mark.parametrize(
        "line",
        [
            "37.75 -122.39 7 1213084600",
            "95.75 -122.39 0 1213084600",
            "37.75 -182.39 0 1213084600",
            "nan -122.39 0 1213084600",
            "37.75 -122.39 0 1213084600.5",
            "37.75 -122.39 0 -1213084600",
            "37.75 -122.39 0 1213084600000",
            "37.75 -122.39 0 1213084600 5",
            "37.75 -122.39 1213084600",
            "37,75 -122,39 0 1213084600",
            "37.75\t-122.39\t0\t1213084600",
            "37.75  -122.39 0 1213084600",
            "latitude longitude occupancy time",
            '37.75 "-122.39" 0 1213084600',
        ],
    )
    def test_a_bad_line_is_named_by_file_and_line_but_not_shown(self, tmp_path, line):
        path = write_cab(tmp_path, CABS["abboip"][0], CABS["abboip"][1], line, CABS["abboip"][2])
        with pytest.raises(ValueError, match=RULE.format(3)) as caught:
            pg.read_cabspotting(path)
        assert str(path) in str(caught.value)
        assert not any(part in str(caught.value).replace(str(path), "") for part in ("37", "122.", "12130"))

    @pytest.mark.parametrize("line", ["37.75 -122.39 7 1213084600", "37.75 -122.39 1213084600"])
    def test_lines_are_counted_with_the_empty_ones(self, tmp_path, line):
        with pytest.raises(ValueError, match=RULE.format(4)):
            pg.read_cabspotting(write_cab(tmp_path, CABS["abboip"][0], "", "", line))

    def test_a_bad_line_in_an_archive_is_named_too(self, tmp_path):
        archive = write_archive(tmp_path / "c.tar.gz", cabs=CABS | {"zzz": ["37.75 -122.39 2 1213084600"]})
        with pytest.raises(ValueError, match=r"c\.tar\.gz:new_zzz\.txt' is not .*" + RULE.format(1)):
            pg.read_cabspotting(archive)

    def test_an_empty_file(self, tmp_path):
        with pytest.raises(ValueError, match=r"new_abboip\.txt' is not in the format of Cabspotting: it is empty"):
            pg.read_cabspotting(write_cab(tmp_path))

    def test_a_missing_file(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"new_nobody\.txt' does not exist"):
            pg.read_cabspotting(tmp_path / "new_nobody.txt")

    def test_a_folder_without_cabs(self, tmp_path):
        (tmp_path / "README").write_text("nothing here")
        with pytest.raises(FileNotFoundError, match=r"has no file of Cabspotting \(new_<cab>\.txt\)"):
            pg.read_cabspotting(tmp_path)

    def test_an_archive_without_cabs(self, tmp_path):
        with pytest.raises(ValueError, match=r"c\.tar\.gz' has no file of Cabspotting"):
            pg.read_cabspotting(write_archive(tmp_path / "c.tar.gz", cabs={}))

    @pytest.mark.parametrize(("name", "mode"), [("c.tar.gz", "w:gz"), ("c.tar", "w"), ("c.tar.xz", "w:xz")])
    def test_no_cut_of_an_archive_loses_cabs_silently(self, tmp_path, name, mode):
        many = {f"cab{cab}": [f"37.{cab}{i:04d} -122.4 0 {1213084600 - i}" for i in range(20)] for cab in range(5)}
        path = write_archive(tmp_path / name, cabs=many, mode=mode)
        content = path.read_bytes()
        for end in range(0, len(content), 512 if mode == "w" else 23):
            path.write_bytes(content[:end])
            assert re.search(rf"^100 records$|{name}' (is cut or damaged|is neither an archive)", outcome_of(path))

    @pytest.mark.parametrize("mode", ["w:gz", "w"])
    def test_a_damaged_archive(self, tmp_path, mode):
        path = write_archive(tmp_path / "c.tar", mode=mode)
        content = bytearray(path.read_bytes())
        damaged = len(content) - 6 if mode == "w:gz" else content.index(b"new_udwadla") + 20
        content[damaged] ^= 255
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"c\.tar' is cut or damaged"):
            pg.read_cabspotting(path)

    def test_a_zip(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
            archive.writestr("new_abboip.txt", content_of(CABS["abboip"]))
        with pytest.raises(ValueError, match=r"c\.zip' is neither an archive nor a file of Cabspotting"):
            pg.read_cabspotting(tmp_path / "c.zip")

    @pytest.mark.parametrize("content", [b"", b"hello\n", bytes(2000)])
    def test_something_else(self, tmp_path, content):
        (tmp_path / "c.tar.gz").write_bytes(content)
        with pytest.raises(ValueError, match=r"c\.tar\.gz' (is neither an archive nor|has no file of)"):
            pg.read_cabspotting(tmp_path / "c.tar.gz")

    @pytest.mark.parametrize("end", range(1, 10))
    def test_a_time_that_is_cut(self, tmp_path, end):
        path = write_cab(tmp_path)
        path.write_bytes(content_of(CABS["abboip"])[: -1 - end])
        with pytest.raises(ValueError, match=r"abboip\.txt' is not .*the file is cut"):
            pg.read_cabspotting(path)

    def test_a_hard_link_in_an_archive_is_read(self, tmp_path):
        path = write_linked(tmp_path / "c.tar.gz", tarfile.LNKTYPE, target="cabspottingdata/new_abboip.txt")
        traces = pg.read_cabspotting(path, as_traces=True)
        assert dict(zip(traces.users, traces.counts, strict=True)) == {
            "abboip": 3,
            "abcoij": 1,
            "link": 3,
            "udwadla": 2,
        }

    @pytest.mark.parametrize(
        ("kind", "target", "words"),
        [
            (tarfile.SYMTYPE, "new_abboip.txt", "is a link or no file"),
            (tarfile.FIFOTYPE, "", "is a link or no file"),
            (tarfile.LNKTYPE, "new_nobody.txt", "is a link to a file that the archive does not hold"),
        ],
    )
    def test_what_is_no_file_in_an_archive_is_told(self, tmp_path, kind, target, words):
        path = write_linked(tmp_path / "c.tar.gz", kind, target=target)
        with pytest.raises(ValueError, match=rf"c\.tar\.gz:new_link\.txt' {words}"):
            pg.read_cabspotting(path)
        with pytest.warns(UserWarning, match=rf"dropped 1 file \(first: .*{words}"):
            assert pg.read_cabspotting(path, errors="skip", as_traces=True).records == 6

    def test_an_archive_that_grows_beyond_measure_is_refused(self, tmp_path, monkeypatch):
        path = write_archive(tmp_path / "c.tar.gz", cabs=CABS | {"zzz": CABS["abboip"] * 20_000})
        assert pg.read_cabspotting(path, as_traces=True).records == 60_006
        monkeypatch.setattr(contents, "_SMALL", 1 << 20)
        with pytest.raises(ValueError, match=r"c\.tar\.gz' would take more than .* GiB"):
            pg.read_cabspotting(path)

    def test_a_folder_that_cannot_be_read_is_told(self, tmp_path, lock):
        write_folder(tmp_path / "cabs")
        (tmp_path / "locked").mkdir()
        lock(tmp_path / "locked")
        with pytest.raises(ValueError, match=r"locked' cannot be read: Permission denied\."):
            pg.read_cabspotting(tmp_path)
        with pytest.warns(UserWarning, match=r"dropped 1 file \(first: '.*locked' cannot be read"):
            check_all(pg.read_cabspotting(tmp_path, errors="skip"))

    def test_a_cab_twice(self, tmp_path):
        folder, archive = write_folder(tmp_path / "cabs"), write_archive(tmp_path / "c.tar.gz")
        with pytest.raises(ValueError, match="Two files hold the same cab"):
            pg.read_cabspotting([folder, archive])

    def test_an_empty_source(self):
        with pytest.raises(ValueError, match=r"'source' parameter of read_cabspotting .* empty list"):
            pg.read_cabspotting([])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_an_invalid_line_is_counted_whatever_ends_lines(tmp_path, end):
    path = tmp_path / "new_a.txt"
    path.write_bytes(f"37.7 -122.4 0 1213084687{end}137.7 -122.4 0 1213084659{end}".encode())
    with pytest.raises(ValueError, match="line 2 is not"):
        pg.read_cabspotting(path)
