"""Folders and frames are protected by a scheduler and workers in processes of their own, over TCP."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import dask.dataframe as dd
import distributed
import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import promesse_geo as pg
import promesse_geo.dask
from promesse_geo.bulk import files
from promesse_geo.bulk.folders import Done
from promesse_geo.cli.commands import main

PACKAGE = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The address of a scheduler with three workers, and the workers, of which each test may kill one."""
    folder = tmp_path_factory.mktemp("cluster")
    about, log = folder / "scheduler.json", folder / "log"
    paths = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH", "")]))
    surroundings = os.environ | {"PYTHONPATH": paths, "NUMBA_NUM_THREADS": "1"}
    shared = ["--host", "tcp://127.0.0.1", "--no-dashboard", "--scheduler-file", str(about)]
    alone = ["--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--local-directory", str(folder)]
    commands = [["dask_scheduler", "--port", "0"], *[["dask_worker", *alone]] * 3]
    processes = []
    with log.open("wb") as output:
        try:
            for module, *given in commands:
                command = [sys.executable, "-m", f"distributed.cli.{module}", *given, *shared]
                processes.append(subprocess.Popen(command, env=surroundings, stdout=output, stderr=output))
                while not about.exists() and processes[0].poll() is None:
                    time.sleep(0.1)
            address = json.loads(about.read_text())["address"]
            with distributed.Client(address) as client:
                client.wait_for_workers(3)
            yield address, processes[1:]
        finally:
            for process in reversed(processes):
                process.kill()
                process.wait()


@pytest.fixture(scope="module")
def city():
    """Records of some users in no order, with many equal times."""
    frame = pg.make_city(users=4, days=1, seed=3, recorder="phone")
    frame = frame.assign(time=frame["time"].dt.floor("2min"))
    return frame.iloc[np.random.default_rng(1).permutation(len(frame))].reset_index(drop=True)


def as_table(frame):
    x, y = frame.geometry.x, frame.geometry.y
    return pd.DataFrame({"user": frame["user"], "time": frame["time"], "lon": x, "lat": y})


def test_frames_are_shuffled_from_worker_to_worker(city, cluster):
    address, _ = cluster
    with distributed.Client(address):
        safe = dd.from_pandas(as_table(city), npartitions=5, sort=False).promesse.smooth(200)
        assert "p2p" in str(safe.optimize().dask.keys()).lower()
        found = safe.compute().sort_values("user", kind="stable", ignore_index=True)
    expected = pg.Promesse(200).protect(city)
    assert found["time"].tolist() == expected["time"].tolist()
    assert found.geometry.to_wkb().tolist() == expected.geometry.to_wkb().tolist()


@pytest.mark.parametrize("killed_in", ["scatter", "gather"])
def test_the_command_goes_on_when_a_worker_is_killed(city, cluster, monkeypatch, tmp_path, killed_in):
    address, workers = cluster
    monkeypatch.setattr(files, "chunk_size", lambda memory, workers: 800)
    monkeypatch.setattr(files, "count_buckets", lambda records, memory, workers: 5)
    living = [worker for worker in workers if worker.poll() is None]
    assert len(living) > 1
    add = Done.add

    def add_and_kill(done, step, number, result):
        add(done, step, number, result)
        if step == killed_in and living[0].poll() is None:
            living[0].kill()
            living[0].wait()

    monkeypatch.setattr(Done, "add", add_and_kill)
    (tmp_path / "in").mkdir()
    for number in range(5):
        rows = city.iloc[len(city) * number // 5 : len(city) * (number + 1) // 5]
        pq.write_table(
            pa.Table.from_pandas(as_table(rows), preserve_index=False), tmp_path / "in" / f"{number}.parquet"
        )
    given = ["smooth", tmp_path / "in", tmp_path / "out", "--epsilon", "200", "--keep-users", "--dask", address]
    result = CliRunner().invoke(main, list(map(str, given)))
    assert result.exit_code == 0, result.output
    assert living[0].poll() is not None
    found = pd.concat(map(gpd.read_parquet, (tmp_path / "out").iterdir())).sort_values("user", kind="stable")
    expected = pg.Promesse(200).protect(city)
    assert found["user"].tolist() == expected["user"].tolist()
    assert found["time"].tolist() == expected["time"].tolist()
    assert found.geometry.to_wkb().tolist() == expected.geometry.to_wkb().tolist()
