"""Folders and frames are protected by a scheduler and workers in processes of their own, over TCP."""

import json
import os
import signal
import time

import dask.dataframe as dd
import distributed
import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from fresh import Fresh

import promesse_geo as pg
import promesse_geo.dask
from promesse_geo.bulk import files
from promesse_geo.bulk.folders import Done
from promesse_geo.cli.commands import main

CLUSTER = """
import json, os, pathlib, time
import numba
import promesse_geo.dask
from distributed.cli import dask_scheduler, dask_worker

numba.config.NUMBA_NUM_THREADS = 1
shared = ["--host", "tcp://127.0.0.1", "--no-dashboard", "--scheduler-file", "scheduler.json"]
alone = ["--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--local-directory", "."]

def start(command, *given):
    number = os.fork()
    if not number:
        try:
            command.main([*given, *shared])
        finally:
            os._exit(1)
    return number

scheduler = start(dask_scheduler, "--port", "0")
while not pathlib.Path("scheduler.json").exists():
    time.sleep(0.05)
workers = [start(dask_worker, *alone) for _ in range(3)]
pathlib.Path("started").write_text(json.dumps([scheduler, *workers]))
pathlib.Path("started").rename("processes.json")
for _ in range(4):
    os.wait()
"""


def is_alive(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def kill(number):
    os.kill(number, signal.SIGKILL)
    while is_alive(number):
        time.sleep(0.01)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The address of a scheduler with three workers, and the workers, of which each test may kill one."""
    folder = tmp_path_factory.mktemp("cluster")
    started = Fresh(CLUSTER, folder, output=tmp_path_factory.mktemp("output"))
    processes = []
    try:
        while not (folder / "processes.json").exists():
            assert started.process.is_alive()
            time.sleep(0.05)
        processes = json.loads((folder / "processes.json").read_text())
        address = json.loads((folder / "scheduler.json").read_text())["address"]
        with distributed.Client(address) as client:
            client.wait_for_workers(3)
        yield address, processes[1:]
    finally:
        for number in filter(is_alive, reversed(processes)):
            kill(number)
        started.process.kill()
        started.process.join()


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
    living = list(filter(is_alive, workers))
    assert len(living) > 1
    add = Done.add

    def add_and_kill(done, step, number, result):
        add(done, step, number, result)
        if step == killed_in and is_alive(living[0]):
            kill(living[0])

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
    assert not is_alive(living[0])
    found = pd.concat(map(gpd.read_parquet, (tmp_path / "out").iterdir())).sort_values("user", kind="stable")
    expected = pg.Promesse(200).protect(city)
    assert found["user"].tolist() == expected["user"].tolist()
    assert found["time"].tolist() == expected["time"].tolist()
    assert found.geometry.to_wkb().tolist() == expected.geometry.to_wkb().tolist()
