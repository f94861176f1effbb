"""Folders of Parquet hold the bytes that a notebook has in its frame, whatever the CRS and the mechanism."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from fresh import CONTEXT
from hypothesis import given
from hypothesis import strategies as st
from parquet_folders import IGNORED, Now, assert_equal, load
from pyproj import CRS

import promesse_geo as pg
from promesse_geo.bulk import files
from promesse_geo.io.writers.crs import written_crs

pytestmark = IGNORED
CRSS = [4326, 4807, 3857, 2154, 32631, 27700, 2263]  # degrees, grads, metres, and feet
MECHANISMS = [
    pg.Promesse(200),
    pg.Promesse(50, variant="pseudocode"),
    pg.Promesse(80, ends=400, seed="a"),
    pg.GeoIndistinguishability(0.01, seed="a"),
    pg.GeoIndistinguishability(0.01, grid=30, seed="a"),
    pg.PrivacyZones(600, 500, seed="a"),
    pg.Chain([pg.GeoIndistinguishability(0.1, seed="a"), pg.Promesse(60)]),
    pg.Chain([pg.PrivacyZones(300, 200, seed="a"), pg.Promesse(90), pg.GeoIndistinguishability(0.02, seed="a")]),
]
PLACES = {27700: (-1.5, 52.5), 2263: (-74.0, 40.7)}


@st.composite
def frames(draw):
    """Records of some users in any order, in the area of a CRS."""
    crs, rng = draw(st.sampled_from(CRSS)), np.random.default_rng(draw(st.integers(0, 2**32)))
    counts = draw(st.lists(st.integers(2, 60), min_size=1, max_size=5))
    total, (lon, lat) = sum(counts), PLACES.get(crs, (2.3, 48.8))
    steps = rng.normal(0, draw(st.sampled_from([1e-4, 2e-3])), (2, total))
    points = gpd.points_from_xy(*(np.array([[lon], [lat]]) + np.cumsum(steps, axis=1)), crs=4326).to_crs(crs)
    times = pd.Timestamp("2024-03-01", tz="UTC") + pd.to_timedelta(rng.integers(0, 200_000, total), unit="s")
    times = times.as_unit("us")  # files have no seconds
    users = np.repeat([f"user-{number}" for number in range(len(counts))], counts)
    frame = gpd.GeoDataFrame({"user": users, "time": times}, geometry=points)
    return frame.iloc[rng.permutation(total)].reset_index(drop=True)


@given(frames(), st.sampled_from(MECHANISMS), st.integers(1, 4))
def test_the_bytes_of_a_folder_are_those_of_the_frame(tmp_path_factory, frame, mechanism, buckets):
    folder = tmp_path_factory.mktemp("data")
    frame.iloc[: len(frame) // 2].to_parquet(folder / "0.parquet")
    frame.iloc[len(frame) // 2 :].to_parquet(folder / "1.parquet")
    expected = frame.promesse.protect(mechanism)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "chunk_size", lambda memory, workers: 50)
        patch.setattr(files, "count_buckets", lambda records, memory, workers: buckets)
        source = [folder / "0.parquet", folder / "1.parquet"]
        if expected.empty:
            with pytest.raises(ValueError, match="Nothing is left to write"):
                pg.protect_parquet(source, folder / "out", mechanism, keep_users=True)
            return
        pg.protect_parquet(source, folder / "out", mechanism, keep_users=True)
    found = load(folder / "out").sort_values("user", kind="stable", ignore_index=True)
    assert_equal(found.drop(columns=[] if "segment" in expected else ["segment"], errors="ignore"), expected)


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(1, mp_context=CONTEXT) as pool:
        yield pool


@pytest.mark.parametrize("crs", CRSS)
def test_threads_and_processes_write_the_same_bytes(small_city, processes, tmp_path, crs):
    pg.write(small_city.to_crs(crs), tmp_path / "in.parquet")
    digests = set()
    with ThreadPoolExecutor(2) as threads:
        for number, pool in enumerate([None, Now(), threads, processes]):
            out = tmp_path / f"out-{number}"
            pg.protect_parquet(tmp_path / "in.parquet", out, pg.Promesse(200), keep_users=True, executor=pool)
            digests.add(b"".join(path.read_bytes() for path in sorted(out.iterdir())))
    assert len(digests) == 1


@pytest.mark.parametrize("crs", CRSS)
def test_a_crs_is_written_alike_in_all_threads_whatever_was_searched(crs):
    given = CRS.from_user_input(crs)

    def search_and_write():
        CRS.from_json(given.to_json()).to_authority()
        return written_crs(given)

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(search_and_write).result() == written_crs(given) == search_and_write()
