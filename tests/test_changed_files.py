"""Files that change while they are read, or were damaged after they were written."""

import os
import tarfile
import zipfile
from concurrent.futures import Executor, Future

import numpy as np
import pyarrow.parquet as pq
import pyogrio
import pytest

import promesse_geo as pg
from promesse_geo.io import contents, layer

GPX = (
    '<gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg><trkpt lat="45" lon="4">'
    "<time>2024-03-04T08:00:00Z</time></trkpt></trkseg></trk></gpx>\n"
)
CAB = "37.75134 -122.39488 0 1213084687\n37.75136 -122.39527 1 1213084659\n"
PLT = "\n".join([*(f"header {number}" for number in range(6)), "40.0,116.3,0,492,39744.1,2008-10-23,02:53:04", ""])
MDC = "userid\ttime\tlongitude\tlatitude\n5578\t1254000000\t6.6\t46.5\n"


def make_traces(records=2_000) -> pg.Traces:
    places = np.linspace(2, 3, records)
    return pg.Traces.from_arrays(
        places, places + 43, times=np.arange(records) * 10**9, users=["a"], counts=[records], zone="UTC"
    )


def written_table(ending):
    def write(folder):
        pg.write(make_traces(), folder / f"a{ending}")
        return folder / f"a{ending}", folder / f"a{ending}"

    return write


def written_text(name, text):
    def write(folder):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        return folder / name.partition("/")[0], folder / name

    return write


def written_tar(folder):
    (folder / "new_abc.txt").write_text(CAB)
    with tarfile.open(folder / "cabs.tar.gz", "w:gz") as archive:
        archive.add(folder / "new_abc.txt", "new_abc.txt")
    return folder / "cabs.tar.gz", folder / "cabs.tar.gz"


def written_zip(folder):
    with zipfile.ZipFile(folder / "geolife.zip", "w") as archive:
        archive.writestr("Data/000/Trajectory/20081023025304.plt", PLT)
    return folder / "geolife.zip", folder / "geolife.zip"


SOURCES = {
    **{ending: written_table(ending) for ending in (".parquet", ".gpkg", ".csv", ".geojson")},
    "gpx": written_text("a.gpx", GPX),
    "cabspotting": written_text("new_abc.txt", CAB),
    "cabspotting.tar.gz": written_tar,
    "geolife": written_text("Data/000/Trajectory/20081023025304.plt", PLT),
    "geolife.zip": written_zip,
    "mdc": written_text("gps.csv", MDC),
}
every_source = pytest.mark.parametrize("source", SOURCES)


def change_after_the_first_look(monkeypatch, change):
    """Change a file as soon as its reader has noted its state."""
    look, seen = contents._state_of, []

    def look_and_change(path):
        state = look(path)
        if path not in seen:
            seen.append(path)
            change(path)
        return state

    monkeypatch.setattr(contents, "_state_of", look_and_change)


def append(path):
    with path.open("ab") as file:
        file.write(b"\n")


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def touch(path):
    os.utime(path, ns=(0, 0))


def replace(path):
    content, times = path.read_bytes(), path.stat()
    path.rename(path.with_name("before"))
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@every_source
def test_a_file_that_stays_as_it_is_is_read(source, tmp_path):
    path, _ = SOURCES[source](tmp_path)
    assert pg.read_file(path, as_traces=True).records > 0


@every_source
@pytest.mark.parametrize("change", [append, cut, touch, replace, os.unlink])
def test_a_file_that_changes_while_it_is_read_is_an_error_that_names_it(change, source, tmp_path, monkeypatch):
    path, file = SOURCES[source](tmp_path)
    change_after_the_first_look(monkeypatch, change)
    with pytest.raises(ValueError, match="changed while it was read") as caught:
        pg.read_file(path, as_traces=True)
    assert file.name in str(caught.value)


def test_a_changed_file_can_be_skipped(tmp_path, monkeypatch):
    for name in "ab":
        pg.write(make_traces(10), tmp_path / f"{name}.csv")
    change_after_the_first_look(monkeypatch, lambda path: append(path) if path.name == "b.csv" else None)
    with pytest.warns(UserWarning, match=r"dropped 1 file .*b\.csv' changed while it was read"):
        assert pg.read_table(tmp_path, errors="skip", as_traces=True).records == 10


def test_a_geojson_that_is_cut_after_gdal_read_it_does_not_end_the_process(tmp_path, monkeypatch):
    path, read = tmp_path / "a.geojson", pyogrio.read_arrow
    pg.write(make_traces(), path)

    def read_and_cut(*arguments, **options):
        found = read(*arguments, **options)
        os.truncate(path, 10)
        return found

    monkeypatch.setattr(pyogrio, "read_arrow", read_and_cut)
    with pytest.raises(ValueError, match=r"a\.geojson' changed while it was read"):
        pg.read_table(path)


def test_a_geopackage_of_which_gdal_reads_a_part_is_an_error(tmp_path, monkeypatch):
    path, read = tmp_path / "a.gpkg", pyogrio.read_arrow
    pg.write(make_traces(), path)

    def read_less(*arguments, **options):
        metadata, table = read(*arguments, **options)
        return metadata, table.slice(0, 1_900)

    monkeypatch.setattr(pyogrio, "read_arrow", read_less)
    with pytest.raises(ValueError, match=r"a\.gpkg': only 1,900 records of 2,000 could be read"):
        pg.read_table(path)


@pytest.mark.parametrize("piece", [1, 2, 7, 9, 1 << 20])
def test_features_are_counted_in_pieces_of_any_size(piece, tmp_path, monkeypatch):
    monkeypatch.setattr(layer, "_PIECE", piece)
    path = tmp_path / "a.geojson"
    feature = '{"type": "Feature", "properties": {}, "geometry": null}'
    path.write_text(f"\n{feature}\n \n{feature}{feature}\n\n{feature}")
    with path.open("rb") as file:
        assert layer._count(b'"Feature"', file) == 4
        assert layer._count_filled(file, separator=b"\n") == 3
        assert layer._count_filled(file, separator=b"\x1e") == 1
    path.write_text(f"\x1e{feature}\n\x1e\n\x1e{feature}\n")
    with path.open("rb") as file:
        assert layer._count_filled(file, separator=b"\x1e") == 2


# Damage.


def pages_of(path) -> list[tuple[int, int]]:
    """Start and end of the columns' bytes, without those of the first page's header."""
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    starts = [column.dictionary_page_offset or column.data_page_offset for column in columns]
    return [
        (start + column.total_compressed_size // 2, start + column.total_compressed_size)
        for start, column in zip(starts, columns, strict=True)
    ]


def test_a_changed_byte_in_a_page_of_parquet_is_an_error_that_names_the_file(tmp_path):
    path = tmp_path / "a.parquet"
    pg.write(make_traces(), path)
    content = path.read_bytes()
    places = [place for start, end in pages_of(path) for place in np.linspace(start, end - 1, 5).astype(int)]
    assert len(places) == 15
    for place in places:
        path.write_bytes(content[:place] + bytes([content[place] ^ 0b100]) + content[place + 1 :])
        with pytest.raises(ValueError, match=r"a\.parquet' is cut, damaged"):
            pg.read_table(path)


def test_parquet_without_checksums_is_read(tmp_path):
    path = tmp_path / "a.parquet"
    pg.write(make_traces(), path)
    pq.write_table(pq.read_table(path), tmp_path / "b.parquet", write_page_checksum=False)
    assert pg.read_table(tmp_path / "b.parquet", as_traces=True).records == 2_000


def test_a_changed_byte_in_results_is_an_error(tmp_path):
    path = tmp_path / "results.parquet"
    city = {"city": pg.make_city(users=2, days=1, recorder="phone")}
    pg.save_results(pg.evaluate(city, [pg.Promesse(200)], [pg.Compression()]), path)
    content, (_, end) = path.read_bytes(), pages_of(path)[0]
    path.write_bytes(content[: end - 1] + bytes([content[end - 1] ^ 0b100]) + content[end:])
    with pytest.raises(ValueError, match=r"results\.parquet"):
        pg.load_results(path)


# GDAL.


def test_reading_silences_gdal_for_itself_only(tmp_path, run_fresh):
    (tmp_path / "bad.geojson").write_text(
        '{"type": "FeatureCollection", "features": ['
        '{"type": "Feature", "properties": {"user": "a", "time": "2024-03-04T08:00:00Z"}, '
        '"geometry": {"type": "Point", "coordinates": ["hush", 2]}},'
        '{"type": "Feature", "properties": {"user": "a", "time": "2024-03-04T08:00:00Z"}, '
        '"geometry": {"type": "Point", "coordinates": [1, 2]}}]}'
    )
    code = """
    import sys, threading, warnings, pyogrio, promesse_geo as pg
    warnings.simplefilter("ignore")
    before = pyogrio.get_gdal_config_option("CPL_LOG")
    def by_others():
        thread = threading.Thread(target=pyogrio.read_arrow, args=["GeoJSON:bad.geojson"])
        thread.start()
        thread.join()
    for job in (by_others, lambda: pg.read_table("bad.geojson", errors="skip"), by_others):
        job()
        print("--", file=sys.stderr, flush=True)
    assert pyogrio.get_gdal_config_option("CPL_LOG") == before
    """
    done = run_fresh(code, tmp_path)
    assert done.returncode == 0, done.stderr
    first, ours, last, _ = done.stderr.split("--")
    assert "hush" in first
    assert "hush" in last
    assert "hush" not in ours


class _Removing(Executor):
    """Removes a file before the first step."""

    def __init__(self, file):
        self.file = file

    def submit(self, step, /, *given, **options):
        self.file.unlink(missing_ok=True)
        done = Future()
        try:
            done.set_result(step(*given, **options))
        except OSError as error:
            done.set_exception(error)
        return done


def test_a_file_of_a_folder_that_is_removed_is_named(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        pg.write(make_traces(), tmp_path / "in" / f"{name}.parquet")
    removing = _Removing(tmp_path / "in" / "b.parquet")
    with pytest.raises(FileNotFoundError, match=r"stopped: .*b\.parquet'") as caught:
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", pg.Promesse(200), executor=removing)
    assert "Nothing was written" in str(caught.value)
    assert not (tmp_path / "out").exists()
