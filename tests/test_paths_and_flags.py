"""Paths and flags: one check for all functions that take them."""

import io

import pandas as pd
import pytest

import promesse_geo as pg
from promesse_geo import paper
from promesse_geo.audit import check_files
from promesse_geo.validation import check_path

READERS = (pg.read_file, pg.read_table, pg.read_gpx, pg.read_geolife, pg.read_cabspotting, pg.read_mdc)
NO_PATHS = (None, 3, b"x", True, io.BytesIO(b"x"))


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("wrong", NO_PATHS)
def test_readers_refuse_what_is_no_path(read, wrong):
    with pytest.raises(TypeError, match=f"'source' parameter of {read.__name__} must be a path"):
        read(wrong)


@pytest.mark.parametrize("wrong", NO_PATHS)
def test_writers_refuse_what_is_no_path(wrong):
    city = pg.make_city(users=1, days=1, recorder="phone")
    table = pg.measure(city, city, [pg.Compression()])
    for write in (
        lambda: pg.write(city, wrong),
        lambda: pg.save_results(table, wrong),
        lambda: pg.load_results(wrong),
        lambda: pg.run_demo(wrong),
        lambda: check_files(wrong, pg.Traces.from_frame(city)),
        lambda: paper.Reproduction({}, table).save(wrong),
    ):
        with pytest.raises(TypeError, match="must be a path"):
            write()


def test_a_path_without_a_possible_name_is_refused():
    with pytest.raises(ValueError, match="'path' parameter of write"):
        pg.write(pg.make_city(users=1, days=1, recorder="phone"), "a\0b.csv")
    assert str(check_path("a", name="path", owner="write")) == "a"


@pytest.mark.parametrize("wrong", [pd.NA, None, 1, "yes", pd.DataFrame({"secret": [1]})])
def test_flags_are_true_or_false(tmp_path, wrong):
    city = pg.make_city(users=1, days=1, recorder="phone")
    table = pg.measure(city, city, [pg.Compression()])
    for call in (
        lambda: pg.write(city, tmp_path / "a.csv", force=wrong),
        lambda: pg.save_results(table, tmp_path / "a.csv", force=wrong),
        lambda: pg.run_demo(tmp_path, force=wrong),
        lambda: paper.Reproduction({}, table).save(tmp_path, force=wrong),
        *(lambda read=read: read(tmp_path, as_traces=wrong) for read in READERS[1:]),
    ):
        with pytest.raises(TypeError, match="must be True or False") as caught:
            call()
        assert "secret" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_path_that_no_system_can_hold_is_refused(tmp_path):
    with pytest.raises(ValueError, match="lone surrogates"):
        pg.write(pg.make_city(users=1, days=1, recorder="phone"), f"{tmp_path}/\ud800.csv")
