"""Archives and compressed files of any format are read as the folder that they hold."""

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import tempfile
import warnings
import zipfile
from functools import partial

import format_samples
import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyogrio
import pytest
from format_samples import GPX
from test_cli import done

import promesse_geo as pg
from promesse_geo.io import archives, contents
from promesse_geo.io.registry import guess_format
from promesse_geo.messages import DroppedWarning
from promesse_geo.traces.missing_columns import missing_columns

CSV = b"user,time,lon,lat\nana,2024-03-04T08:00:00Z,4.84,45.75\nana,2024-03-04T08:01:00Z,4.85,45.75\n"
COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda content: pa.compress(content, "zstd", asbytes=True),
}


tarred = partial(format_samples.tarred, mode="w")
zipped = partial(format_samples.zipped, compression=zipfile.ZIP_DEFLATED)
PACK = {
    "zip": zipped,
    "tar": tarred,
    **{f"tar.{ending}": lambda members, each=each: each(tarred(members)) for ending, each in COMPRESS.items()},
}


@pytest.fixture(autouse=True)
def private(tmp_path, monkeypatch):
    """A place for temporary folders, which is empty again after each test."""
    place = tmp_path / "private"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield place
    assert not list(place.iterdir())


def store(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize(("name", "content", "user"), [("ride.gpx", GPX, "ride"), ("t.csv", CSV, "ana")])
def test_a_compressed_file_is_read_as_the_file(tmp_path, name, content, user, ending):
    path = store(tmp_path / "ana" / f"{name}.{ending}", COMPRESS[ending](content))
    assert pg.read_file(path, as_traces=True).users.tolist() == [user]
    assert guess_format(path) == ("gpx" if "gpx" in name else "table")
    assert pg.read_file(path, user="folder", as_traces=True).users.tolist() == ["ana"]


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("name", ["a", "archive"])
def test_an_archive_is_read_as_its_folder(tmp_path, ending, name):
    members = {"gpx/ann/one.gpx": GPX, "gpx/ben/two.gpx": GPX.replace(b"4.8", b"4.9")}
    path = store(tmp_path / f"{name}.{ending}", PACK[ending](members))
    traces = pg.read_file(path, as_traces=True)
    assert traces.users.tolist() == ["one", "two"]
    np.testing.assert_allclose(traces.coordinates()[0], [4.8, 4.9])
    assert pg.read_file(path, user="folder", as_traces=True).users.tolist() == ["ann", "ben"]
    assert pg.read_file(path, users=["two"], as_traces=True).users.tolist() == ["two"]
    assert pg.read_file(path, format="gpx", as_traces=True).records == 2
    flat = store(tmp_path / f"flat.{ending}", PACK[ending]({"one.gpx": GPX}))
    assert pg.read_file(flat, user="folder", as_traces=True).users.tolist() == ["flat"]


def test_a_zip_of_a_shapefile_equals_what_geopandas_reads(tmp_path):
    frame = gpd.GeoDataFrame({"user": ["a", "b"], "time": ["2024-03-04T08:00:00Z", "2024-03-04T08:01:00Z"]})
    frame = frame.set_geometry(gpd.points_from_xy([4.8, 4.9], [45.7, 45.8], crs=4326))
    pyogrio.write_dataframe(frame, tmp_path / "s.shp")
    parts = {file.name: file.read_bytes() for file in tmp_path.glob("s.*")}
    path = store(tmp_path / "s.zip", zipped(parts))
    read, other = pg.read_file(path, as_traces=True).to_frame(), gpd.read_file(path)
    assert read.geometry.to_wkt().tolist() == other.geometry.to_wkt().tolist()


def test_files_of_several_formats_are_one_data_set(tmp_path):
    folder = tmp_path / "export"
    store(folder / "ride.gpx", GPX)
    store(folder / "walk.gpx.bz2", bz2.compress(GPX))
    store(folder / "t.csv", CSV)
    store(folder / "old.zip", zipped({"run.gpx": GPX}))
    store(folder / "photo.jpg", b"\xff\xd8")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        traces = pg.read_file(folder, as_traces=True)
    assert dict(zip(traces.users, traces.counts.tolist(), strict=True)) == {"ana": 2, "ride": 1, "run": 1, "walk": 1}
    assert [str(each.message) for each in caught if "not read" in str(each.message)] == [
        "1 file was not read, because the ending is another one (.jpg)."
    ]
    assert guess_format(folder) == "table"


def test_one_user_in_two_formats_is_an_error(tmp_path):
    store(tmp_path / "x" / "ana.gpx", GPX)
    store(tmp_path / "x" / "t.csv", CSV)
    with pytest.raises(ValueError, match=r"1 user is .*several formats \('gpx' and 'table'\).*--format") as caught:
        pg.read_file(tmp_path / "x", as_traces=True)
    assert "ana" not in str(caught.value)
    assert pg.read_file(tmp_path / "x", user="folder", as_traces=True).users.tolist() == ["x"]


def test_errors_name_archive_and_member(tmp_path, private):
    path = store(tmp_path / "two.zip", zipped({"a/bad.gpx": b"<gpx><trk>", "a/good.gpx": GPX}))
    with pytest.raises(ValueError, match=r"two\.zip/a/bad\.gpx") as caught:
        pg.read_file(path, as_traces=True)
    assert str(private) not in str(caught.value)
    with pytest.warns(UserWarning, match=r"1 file .*two\.zip/a/bad\.gpx") as warned:
        assert pg.read_file(path, errors="skip", as_traces=True).users.tolist() == ["good"]
    assert not any(str(private) in str(each.message) for each in warned)
    single = store(tmp_path / "bad.gpx.xz", lzma.compress(b"<gpx><trk>"))
    with pytest.raises(ValueError, match=r"bad\.gpx\.xz' is not GPX"):
        pg.read_file(single, as_traces=True)


def test_an_archive_keeps_what_warnings_count_and_what_errors_miss(tmp_path):
    lines = CSV + b"ben,,4.8,45.7\n"
    path = store(tmp_path / "a.zip", zipped({"table.csv": lines}))
    with pytest.warns(DroppedWarning, match=r"a\.zip/table\.csv") as caught:
        pg.read_file(path, errors="skip")
    assert caught[0].message.counts == {"records (no time, or one that cannot be read)": 1}
    renamed = store(tmp_path / "b.zip", zipped({"table.csv": CSV.replace(b"user", b"Wer")}))
    with pytest.raises(KeyError, match=r"b\.zip/table\.csv.*'Wann' does not exist") as missing:
        pg.read_file(renamed, user="Wer", time="Wann")
    assert missing_columns(missing.value) == {"time": "Wann"}
    plain = store(tmp_path / "safe.csv", CSV)
    for pair in ((renamed, plain), (plain, renamed)):
        assert "compression" in done("measure", *pair, "--user", "Wer").stdout


@pytest.mark.parametrize("name", ["../out.csv", "/out.csv", "a/../../out.csv", "..\\out.csv", "C:\\out.csv"])
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_no_member_leaves_the_archive(tmp_path, name, pack):
    path = store(tmp_path / "deep" / "evil.tar", pack({"in.csv": CSV, name: CSV}))
    with pytest.raises(ValueError, match=r"evil\.tar' has a member whose path leads out"):
        pg.read_file(path, as_traces=True)
    assert not list(tmp_path.rglob("out.csv"))


def test_links_and_special_files_are_not_unpacked(tmp_path):
    secret = store(tmp_path / "secret.csv", CSV.replace(b"ana", b"eve"))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for kind, name in ((tarfile.SYMTYPE, "l.csv"), (tarfile.LNKTYPE, "h.csv"), (tarfile.FIFOTYPE, "p.csv")):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, str(secret)
            archive.addfile(member)
        member = tarfile.TarInfo("t.csv")
        member.size = len(CSV)
        archive.addfile(member, io.BytesIO(CSV))
    path = store(tmp_path / "links.tar", packed.getvalue())
    with pytest.warns(UserWarning, match=r"3 links or special files in .*links\.tar"):
        assert pg.read_file(path, as_traces=True).users.tolist() == ["ana"]


def test_a_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "size_limit", lambda size: 1000)
    monkeypatch.setattr(contents, "size_limit", lambda size: 1000)
    path = store(tmp_path / "bomb.zip", zipped({"t.csv": CSV * 100}))
    with pytest.raises(ValueError, match=r"bomb\.zip' would take more than"):
        pg.read_file(path, as_traces=True)


@pytest.mark.parametrize("ending", ["zip", "tar.gz", "tar.xz", "tar.zst"])
def test_a_cut_archive_is_named_and_skip_keeps_what_comes_before(tmp_path, ending):
    noise = np.random.default_rng(1).bytes(300_000)
    path = store(tmp_path / f"a.{ending}", PACK[ending]({"t.csv": CSV, "photo.jpg": noise, "u.csv": CSV})[:-90_000])
    with pytest.raises(ValueError, match=rf"a\.{ending}' is cut or damaged"):
        pg.read_file(path, as_traces=True)
    if ending != "zip":  # its table of members is at the end
        with pytest.warns(UserWarning, match="What comes before that was read"):
            assert pg.read_file(path, errors="skip", as_traces=True).users.tolist() == ["ana"]


@pytest.mark.parametrize("ending", PACK)
def test_an_archive_of_any_size_that_is_cut_is_called_so(tmp_path, ending):
    content = PACK[ending]({"t.csv": CSV})
    for end in (*range(20, len(content) - 40, len(content) // 12), len(content) // 2):
        path = store(tmp_path / f"a.{ending}", content[:end])
        if ending == "tar" and end >= 1024:  # after the block of the records only zeros are missing
            assert len(pg.read_file(path)) == 2
        elif ending != "tar" or end >= 512:
            with pytest.raises(ValueError, match=rf"a\.{ending}' is cut or damaged"):
                pg.read_file(path)


def nested(depth):
    """The content of a zip archive in others."""
    content = zipped({"t.csv": CSV})
    for level in range(1, depth):
        content = zipped({f"level{level}.zip": content})
    return content


def test_archives_are_unpacked_to_a_depth_that_is_named(tmp_path):
    assert len(pg.read_file(store(tmp_path / "a.zip", nested(3)))) == 2
    path = store(tmp_path / "deep" / "a.zip", nested(4))
    with pytest.raises(ValueError, match=r"a\.zip/level3\.zip/level2\.zip/level1\.zip' lies in 3 archives"):
        pg.read_file(path)
    (path.parent / "t.csv").write_bytes(CSV)
    with pytest.warns(UserWarning, match="lies in 3 archives.* not read"):
        assert len(pg.read_file(path.parent, errors="skip")) == 2


@pytest.mark.parametrize("ending", COMPRESS)
def test_a_file_that_is_compressed_twice_is_read(tmp_path, ending):
    path = store(tmp_path / f"t.csv.gz.{ending}", COMPRESS[ending](gzip.compress(CSV)))
    assert len(pg.read_file(path)) == 2
    path = store(tmp_path / "folder" / path.name, path.read_bytes())
    assert len(pg.read_file(path.parent)) == 2


def test_an_encrypted_zip_is_named(tmp_path):
    content = bytearray(zipped({"t.csv": CSV}))
    for magic, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(magic) + offset] |= 1
    with pytest.raises(ValueError, match=r"t\.zip' is encrypted"):
        pg.read_file(store(tmp_path / "t.zip", bytes(content)), as_traces=True)


def test_the_temporary_folder_is_private(tmp_path, private, monkeypatch):
    modes = []
    monkeypatch.setattr(
        archives, "_write", lambda *_: modes.extend(os.stat(f).st_mode & 0o777 for f in private.iterdir())
    )
    with pytest.raises(ValueError, match="no file in a known format"):
        pg.read_file(store(tmp_path / "a.zip", zipped({"t.csv": CSV})), as_traces=True)
    assert modes == [0o700]


def test_a_link_in_a_zip_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "links.zip", "w") as archive:
        archive.writestr("a.csv", CSV)
        link = zipfile.ZipInfo("b.csv")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "a.csv")
    with pytest.warns(UserWarning, match=r"1 link or special file in .*links\.zip"):
        assert len(pg.read_file(tmp_path / "links.zip")) == 2


def test_what_lies_packed_and_unpacked_side_by_side_is_never_lost_silently(tmp_path):
    other = GPX.replace(b"4.8", b"4.9")
    beside = store(tmp_path / "beside.zip", zipped({"a.gpx": GPX, "a.gpx.gz": gzip.compress(other)}))
    with pytest.raises(ValueError, match="two users would become one"):
        pg.read_file(beside)
    folders = {"trip/one.gpx": GPX, "trip.zip": zipped({"two.gpx": other})}
    nested = store(tmp_path / "nested.zip", zipped(folders))
    assert pg.read_file(nested, as_traces=True).users.tolist() == ["one", "two"]
    for name, content in folders.items():
        store(tmp_path / "folder" / name, content)
    assert pg.read_file(tmp_path / "folder", as_traces=True).users.tolist() == ["one", "two"]
    store(tmp_path / "folder" / "trip" / "two.gpx", GPX)
    with pytest.raises(ValueError, match="two users would become one"):
        pg.read_file(tmp_path / "folder")


def test_links_to_folders_are_followed_beside_archives_too(tmp_path):
    store(tmp_path / "outside" / "one.gpx", GPX)
    store(tmp_path / "inside" / "two.zip", zipped({"two.gpx": GPX}))
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "outside")
    assert pg.read_file(tmp_path / "inside", as_traces=True).users.tolist() == ["one", "two"]


def test_a_file_is_not_named_like_an_archive_with_the_same_beginning(tmp_path):
    store(tmp_path / "a.zip", zipped({"one.gpx": GPX}))
    store(tmp_path / "ab.gpx", GPX[:-20])
    with pytest.raises(ValueError, match=rf"{tmp_path.name}/ab.gpx'"):
        pg.read_file(tmp_path)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize(
    ("path", "member", "content"),
    [
        ("a.kmz", "doc.kml", b"<kml>" + b" " * 999 + b"</kml>"),
        ("a.zip", "000/Trajectory/1.plt", b"Geolife trajectory" + b"\n" * 999),
        ("a.zip", "a.gpx", GPX),
    ],
)
def test_a_damaged_zip_is_named_whatever_its_compression(tmp_path, path, member, content, method):
    packed = bytearray(format_samples.zipped({member: content}, compression=method))
    begin = packed.index(member.encode()) + len(member)
    packed[begin + 8 : begin + 30] = bytes(22)
    with pytest.raises(ValueError, match=r"a\.\w+.* is (cut or )?damaged"):
        pg.read_file(store(tmp_path / path, bytes(packed)))


def test_a_zip_whose_member_has_no_name_is_damaged(tmp_path):
    packed = zipped({"a.gpx": GPX}).replace(b"\x05\x00", b"\x00\x00")
    with pytest.raises(ValueError, match="cut or damaged"):
        pg.read_file(store(tmp_path / "a.zip", packed))
