"""The command geo-indistinguishability."""

import re
from pathlib import Path

import geopandas as gpd
import pytest
from test_cli import done, failed, make_frame

import promesse_geo as pg

SAMPLES = Path(__file__).parents[1] / "data" / "sample"


@pytest.fixture
def prepared(tmp_path):
    """The path of prepared data."""
    pg.write(make_frame(), tmp_path / "raw.parquet")
    done("prepare", tmp_path / "raw.parquet", tmp_path / "prepared.parquet")
    return tmp_path / "prepared.parquet"


def test_noise_keeps_times_and_counts_and_renames_users(prepared, tmp_path):
    said = done("geo-indistinguishability", prepared, tmp_path / "noisy.gpkg", "--level", 4, "--radius", 100)
    assert said.stdout.endswith("noisy.gpkg: 600 records of 6 traces\n")
    noisy, before = gpd.read_file(tmp_path / "noisy.gpkg"), gpd.read_parquet(prepared)
    assert sorted(noisy["time"]) == sorted(before["time"])
    assert set(noisy["user"]).isdisjoint(before["user"])


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".gpkg", ".geojson"])
def test_noise_beyond_the_projection_is_refused_and_leaves_no_file(tmp_path, ending):
    frame = make_frame().set_crs(4326).to_crs("+proj=ortho +lon_0=92 +type=crs")
    frame.to_parquet(tmp_path / "edge.parquet")
    output = tmp_path / f"noisy{ending}"
    said = failed("geo-indistinguishability", tmp_path / "edge.parquet", output, "--epsilon", 1e-5)
    assert re.search(r"does not reach \d+ of 600 locations .* ogr2ogr", said)
    assert [path.name for path in tmp_path.iterdir()] == ["edge.parquet"]


def test_a_seed_repeats_the_noise_and_shows_nowhere(prepared, tmp_path):
    for name in ("one.csv", "two.csv"):
        done(
            "geo-indistinguishability", prepared, tmp_path / name, "--epsilon", 0.01, "--seed", 31415926, "--keep-users"
        )
    one, two = ((tmp_path / name).read_bytes() for name in ("one.csv", "two.csv"))
    assert one == two
    assert b"31415926" not in one


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "either --epsilon, or --level"),
        (["--epsilon", 0.01, "--level", 4], "either --epsilon, or --level"),
        (["--epsilon", 0.01, "--radius", 100], "either --epsilon, or --level"),
        (["--epsilon", 200], "Is it in 1/metre?"),
        (["--epsilon", -1], "--epsilon of GeoIndistinguishability must be"),
        (["--level", 0.5], "--level of GeoIndistinguishability must be"),
        (["--level", 4, "--grid", 0], "--grid of GeoIndistinguishability must be"),
    ],
)
def test_a_wrong_level_is_a_wrong_call(words, reason, prepared, tmp_path):
    said = failed("geo-indistinguishability", prepared, tmp_path / "noisy.csv", *words, code=2)
    assert reason in said
