"""Files of a folder of Parquet: of any type of columns, with invalid records, or damaged."""

import os
import sys
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from parquet_folders import IGNORED, PROMESSE, TOKEN, as_table, assert_equal, load, save

import promesse_geo as pg
from promesse_geo.bulk import files

pytestmark = IGNORED


def spoiled(city):
    bad = as_table(city)
    lat = bad.column("lat").to_pylist()
    user = bad.column("user").to_pylist()
    lat[5_000], lat[5_001], user[9_000] = 95.0, None, None
    bad = bad.set_column(3, "lat", pa.array(lat, pa.float64()))
    return bad.set_column(0, "user", pa.array(user))


def test_invalid_records_are_counted_once_with_file_and_row(shuffled_city, many_chunks, tmp_path):
    (tmp_path / "in").mkdir()
    bad = spoiled(shuffled_city)
    pq.write_table(bad.slice(0, 4_000), tmp_path / "in" / "a.parquet", row_group_size=900)
    pq.write_table(bad.slice(4_000), tmp_path / "in" / "b.parquet", row_group_size=900)
    with pytest.raises(ValueError, match=f"3 of {len(shuffled_city):,} records") as caught:
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    for words in ("row 1,000 of", "row 1,001 of", "row 5,000 of", "b.parquet", "no user: 1"):
        assert words in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    with pytest.warns(UserWarning, match=f"3 of {len(shuffled_city):,} records were dropped"):
        report = pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, errors="skip")
    good = shuffled_city.drop(index=[5_000, 5_001, 9_000])
    assert report.dropped_records == 3
    assert_equal(load(tmp_path / "out"), pg.pseudonymize(PROMESSE.protect(good), seed=TOKEN))


def test_breaks_of_text_hold_over_files(shuffled_city, many_chunks, tmp_path):
    segments = np.array(["morning", "evening", None], object)[(np.arange(len(shuffled_city)) // 50) % 3]
    (tmp_path / "in").mkdir()
    table = as_table(shuffled_city).append_column("phase", pa.array(segments))
    for number in range(3):
        rows = table.slice(
            number * len(shuffled_city) // 3, (number + 1) * len(shuffled_city) // 3 - number * len(shuffled_city) // 3
        )
        pq.write_table(rows, tmp_path / "in" / f"{number}.parquet")
    pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, segment="phase", keep_users=True)
    expected = shuffled_city.assign(phase=segments).promesse(segment="phase").smooth(200)
    found = load(tmp_path / "out").sort_values("user", kind="stable", ignore_index=True)
    assert_equal(found[["user", "time", "phase", "geometry"]], expected)


@pytest.mark.parametrize("kind", ["seconds", "text", "naive", "Paris", "microseconds", "fractions"])
def test_times_of_any_kind_mean_the_same_in_all_files(shuffled_city, many_chunks, tmp_path, kind):
    times = shuffled_city["time"]
    written = {
        "seconds": times.astype("int64") // 10**9,
        "fractions": times.astype("int64") / 1e9,
        "text": times.dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "naive": times.dt.tz_localize(None),
        "Paris": times.dt.tz_convert("Europe/Paris"),
        "microseconds": times.dt.as_unit("us"),
    }[kind]
    (tmp_path / "in").mkdir()
    table = as_table(shuffled_city).set_column(1, "time", pa.array(written))
    half = len(shuffled_city) // 2
    pq.write_table(table.slice(0, half), tmp_path / "in" / "a.parquet")
    pq.write_table(table.slice(half), tmp_path / "in" / "b.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what numbers mean
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
        expected = PROMESSE.protect(pg.read_file(tmp_path / "in"))
    assert_equal(load(tmp_path / "out"), pg.pseudonymize(expected, seed=TOKEN))


def test_a_projected_crs_is_measured_as_all_records_in_memory_are(shuffled_city, many_chunks, tmp_path):
    metric = shuffled_city.to_crs(32631)
    (tmp_path / "in").mkdir()
    for number in range(3):
        metric.iloc[number::3].to_parquet(tmp_path / "in" / f"{number}.parquet")
    ordered = pd.concat([metric.iloc[number::3] for number in range(3)], ignore_index=True)
    pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    assert_equal(load(tmp_path / "out"), pg.pseudonymize(PROMESSE.protect(ordered), seed=TOKEN))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda table: table.rename_columns(["who", "time", "lon", "lat"]), "user"),
        (lambda table: table.set_column(0, "user", pa.array(range(len(table)))), "another type"),
        (lambda table: table.set_column(1, "time", table.column("time").cast(pa.timestamp("ns"))), "another type"),
        (lambda table: table.drop(["lat"]), "lat"),
    ],
)
def test_files_that_hold_records_in_another_way_are_named(shuffled_city, many_chunks, tmp_path, change, words):
    save(shuffled_city, tmp_path / "in")
    table = pq.read_table(tmp_path / "in" / "002.parquet")
    pq.write_table(change(table), tmp_path / "in" / "002.parquet")
    with pytest.raises((ValueError, KeyError), match=words) as caught:
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    assert "002.parquet" in str(caught.value)


def test_a_file_that_is_no_parquet_is_named(shuffled_city, many_chunks, tmp_path):
    save(shuffled_city, tmp_path / "in")
    (tmp_path / "in" / "003.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(ValueError, match=r"003.parquet.*not Parquet"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)


def test_no_records_give_an_empty_part_with_all_columns(shuffled_city, many_chunks, tmp_path):
    save(shuffled_city.iloc[:0], tmp_path / "in", number=2)
    report = pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    found = load(tmp_path / "out")
    assert (len(found), list(found.columns), report.records) == (0, ["user", "time", "geometry"], 0)


def test_a_single_trace_keeps_no_user(shuffled_city, many_chunks, tmp_path):
    track = shuffled_city[shuffled_city["user"] == "user-003"].drop(columns="user")
    (tmp_path / "in").mkdir()
    track.to_parquet(tmp_path / "in" / "a.parquet")
    pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, user=None)
    assert_equal(load(tmp_path / "out"), track.promesse(user=None).smooth(200))


def test_a_file_that_is_replaced_after_the_look_is_noticed(shuffled_city, many_chunks, monkeypatch, tmp_path):
    save(shuffled_city, tmp_path / "in")
    look = files.find_space

    def replace_file(sources, space):
        (tmp_path / "in" / "002.parquet").write_bytes((tmp_path / "in" / "001.parquet").read_bytes())
        return look(sources, space)

    monkeypatch.setattr(files, "find_space", replace_file)
    with pytest.raises(ValueError, match=r"002.parquet.*changed"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)


def test_text_that_is_no_utf8_is_not_quoted(shuffled_city, many_chunks, tmp_path):
    (tmp_path / "in").mkdir()
    name = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 6], np.int32)), pa.py_buffer(b"M\xfcller")]
    )
    table = as_table(shuffled_city.iloc[:1]).set_column(0, "user", name)
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    for call in (
        lambda: pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE),
        lambda: pg.protect_arrow(table, PROMESSE),
    ):
        with pytest.raises(ValueError, match="UTF-8") as caught:
            call()
        assert "ller" not in str(caught.value)


def test_times_far_apart_in_different_chunks_are_an_error(shuffled_city, many_chunks, monkeypatch, tmp_path):
    monkeypatch.setattr(files, "chunk_size", lambda memory, workers: 10)
    far = shuffled_city.iloc[:40].assign(
        user="a", time=pd.to_datetime(["1700-02-01", "2200-02-01"], utc=True).repeat(20)
    )
    save(far, tmp_path / "in", number=2)
    with pytest.raises(ValueError, match="292 years"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", pg.GeoIndistinguishability(0.01))


def test_an_unknown_time_zone_is_named_with_the_file(tmp_path):
    times = pa.array([1, 2], pa.timestamp("ns", "Mars/Phobos"))
    table = pa.table({"user": ["a", "a"], "time": times, "lon": [1.0, 2.0], "lat": [1.0, 2.0]})
    pq.write_table(table, tmp_path / "a.parquet")
    words = r"the time zone of column 'time' is 'Mars/Phobos', which is not known here. Convert"
    with pytest.raises(ValueError, match=f"a.parquet': {words}"):
        pg.protect_parquet(tmp_path / "a.parquet", tmp_path / "out", PROMESSE)
    with pytest.raises(ValueError, match=words):
        pg.protect_arrow(table, PROMESSE)
    with pytest.raises(ValueError, match=f"a.parquet': {words}"):
        pg.read_file(tmp_path / "a.parquet")


@pytest.mark.parametrize("kind", ["integers", "fractions", "unsigned", "text"])
def test_numbers_that_are_no_times_are_invalid_as_in_readers(shuffled_city, many_chunks, tmp_path, kind):
    numbers = shuffled_city["time"].astype("int64").to_numpy() // 10**9
    numbers[[5, 6, 7]] = 0, 9, 2**62
    written = {
        "integers": pa.array(numbers),
        "fractions": pa.array(np.where(numbers == 2**62, 1e30, numbers)),
        "unsigned": pa.array(numbers.astype(np.uint64)),
        "text": pa.array(numbers.astype(str)),
    }[kind]
    (tmp_path / "in").mkdir()
    pq.write_table(as_table(shuffled_city).set_column(1, "time", written), tmp_path / "in" / "a.parquet")
    with (
        pytest.raises(ValueError, match=r"cannot be used .*: 3, first in row 5"),
        pytest.warns(UserWarning, match="as seconds since"),
    ):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    with pytest.warns(UserWarning, match=r"as seconds since|3 of .* were dropped"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, errors="skip")
    with pytest.warns(UserWarning, match=r"as seconds since|dropped 3 records"):
        read = pg.read_file(tmp_path / "in", errors="skip")
    expected = PROMESSE.protect(read)
    assert_equal(load(tmp_path / "out"), pg.pseudonymize(expected, seed=TOKEN))


@pytest.mark.parametrize("number", range(8))
def test_a_damaged_file_is_named(shuffled_city, many_chunks, tmp_path, number):
    save(shuffled_city.iloc[:2000], tmp_path / "in", number=1)
    path = next((tmp_path / "in").iterdir())
    content = bytearray(path.read_bytes())
    random = np.random.default_rng(number)
    for place in random.integers(4, len(content) - 8, 40):
        content[place] ^= random.integers(1, 256)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=path.name):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are Unicode")
def test_paths_that_are_no_utf8_are_read_and_written(shuffled_city, many_chunks, tmp_path):
    save(shuffled_city.iloc[:700], tmp_path / "in", number=1)
    odd = {name: os.fsdecode(os.fsencode(tmp_path / name) + b"\xff") for name in ("in", "out", "scratch")}
    (tmp_path / "in").rename(odd["in"])
    os.mkdir(odd["scratch"])
    pg.protect_parquet(odd["in"], odd["out"], PROMESSE, scratch=odd["scratch"])
    assert sorted(os.listdir(odd["out"])) == ["part-00000.parquet", "part-00001.parquet"]
    pg.protect_parquet(odd["in"], odd["out"], PROMESSE, force=True)


@pytest.mark.usefixtures("many_chunks")
@pytest.mark.parametrize("columns", [("visible",), ("valid",), ("visible", "valid")])
def test_folders_leave_out_records_marked_as_bad_as_tables_do(tmp_path, columns):
    city = pg.make_city(users=3, days=1, recorder="phone")
    table = pd.DataFrame(city.assign(lon=city.geometry.x, lat=city.geometry.y).drop(columns="geometry"))
    is_bad = np.zeros(len(table), bool)
    for number, column in enumerate(columns):
        bad = np.arange(len(table)) % 10 == number
        table[column], is_bad = ~bad, is_bad | bad
    table.loc[is_bad, "lat"] = np.nan  # bad records need no position
    (tmp_path / "in").mkdir()
    table[: len(table) // 2].to_parquet(tmp_path / "in" / "a.parquet")
    others = table[len(table) // 2 :].drop(columns=columns[0])
    others[others["lat"].notna()].to_parquet(tmp_path / "in" / "b.parquet")
    with pytest.warns(UserWarning, match=r"marked as bad in the column.*row \d+ of .*counted from 0"):
        report = pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, keep_users=True)
    with pytest.warns(UserWarning, match=r"marked as bad in the column.*row \d+ of .*counted from 0"):
        expected = pg.read_table(tmp_path / "in")
    assert report.dropped_records == 0
    assert len(expected) == int((~is_bad).sum())
    found = load(tmp_path / "out").sort_values("user", kind="stable", ignore_index=True)
    assert_equal(found, PROMESSE.protect(expected))
    with pytest.warns(UserWarning, match="marked as bad"):
        result = pg.publish_parquet(tmp_path / "in", None, pg.Promesse(200), dry_run=True)
    assert result.counts["dropped_reading"] == int(is_bad[: len(table) // 2].sum())


def damage_values(path):
    """Change bytes of the values of a file, whose schema can still be read."""
    table = pq.read_table(path)
    pq.write_table(table, path, row_group_size=100, compression="none", write_page_checksum=True)
    content = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(1).column(table.num_columns - 1)
    content[column.dictionary_page_offset + column.total_compressed_size - 5] ^= 255
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[:-30])


def hold_lists(path):
    table = pq.read_table(path)
    pq.write_table(table.set_column(0, "user", pa.array([["a"]] * len(table))), path)


def forget_the_time(path):
    pq.write_table(pq.read_table(path).drop_columns(["time"]), path)


DAMAGES = [damage_values, cut, hold_lists, forget_the_time]


@pytest.mark.parametrize("chunk", [150, 10**6])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_skipped_as_readers_skip_them(shuffled_city, monkeypatch, tmp_path, damage, chunk):
    monkeypatch.setattr(files, "chunk_size", lambda memory, workers: chunk)
    save(shuffled_city.iloc[:1500], tmp_path / "in", number=5, group=100)
    for number in (1, 3):
        damage(tmp_path / "in" / f"00{number}.parquet")
    with pytest.raises((ValueError, TypeError, KeyError), match=r"001.parquet") as caught:
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    assert "Skip files that cannot be read with errors='skip'" in "".join(caught.value.__notes__)
    with pytest.warns(UserWarning, match=r"protect_parquet dropped 2 files \(first: .*001.parquet"):
        report = pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, keep_users=True, errors="skip")
    with pytest.warns(UserWarning, match=r"read_table dropped 2 files \(first: .*001.parquet"):
        read = pg.read_file(tmp_path / "in", errors="skip")
    assert (report.records, report.counts["skipped_files"], report.dropped_records) == (len(read), 2, 0)
    assert_equal(load(tmp_path / "out"), PROMESSE.protect(read))


def test_files_that_can_none_be_read_are_an_error(shuffled_city, tmp_path):
    for damage in (cut, damage_values):
        save(shuffled_city.iloc[:400], tmp_path / "in", number=2)
        for path in (tmp_path / "in").iterdir():
            damage(path)
        with pytest.raises(ValueError, match=r"None of 2 files could be read. The first: .*000.parquet"):
            pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, errors="skip")


def test_damaged_files_do_not_count_for_the_space(shuffled_city, monkeypatch, tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(3):
        shuffled_city.iloc[number:600:3].to_crs(32631).to_parquet(tmp_path / "in" / f"{number}.parquet")
    damage_values(tmp_path / "in" / "1.parquet")
    with pytest.warns(UserWarning, match="dropped 1 file"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, keep_users=True, errors="skip")
    with pytest.warns(UserWarning, match="dropped 1 file"):
        read = pg.read_file(tmp_path / "in", errors="skip")
    assert_equal(load(tmp_path / "out"), PROMESSE.protect(read))


def test_damaged_files_are_counted_in_publications_and_measures(shuffled_city, tmp_path):
    save(shuffled_city.iloc[:2000], tmp_path / "in")
    cut(tmp_path / "in" / "001.parquet")
    damage_values(tmp_path / "in" / "002.parquet")
    with pytest.warns(UserWarning, match="publish_parquet dropped 2 files"):
        result = pg.publish_parquet(tmp_path / "in", None, PROMESSE, dry_run=True, errors="skip")
    assert result.counts["skipped_files"] == 2
    with pytest.warns(UserWarning, match="measure_parquet dropped 2 files"):
        found = pg.measure_parquet(tmp_path / "in", tmp_path / "in", [pg.Compression()], errors="skip")
    assert found["value"].tolist() == [100.0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_pipes_are_refused_at_once(shuffled_city, tmp_path):
    save(shuffled_city.iloc[:400], tmp_path / "in", number=1)
    os.mkfifo(tmp_path / "in" / "p.parquet")
    with pytest.raises(ValueError, match=r"p.parquet' is a pipe or a device. Save its content to a file first"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    with pytest.warns(UserWarning, match=r"dropped 1 file \(first: .*p.parquet' is a pipe"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, errors="skip")
    (tmp_path / "old").mkdir()
    os.mkfifo(tmp_path / "old" / "part-00000.parquet")
    with pytest.raises(FileExistsError, match="no folder of parts"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "old", PROMESSE, force=True)
