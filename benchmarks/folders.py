"""Folders of Parquet: files to files, beside pyarrow that reads and writes the same tables.

Each task runs in a process of its own: `python benchmarks/folders.py TASK SOURCE TARGET EPSILON` prints its seconds,
its processor time and its greatest memory as JSON.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import promesse_geo as pg

PER_USER = 5_000  # records
_GROUP = 500_000  # records of a row group


def write_walks(folder: Path, records: int, *, files: int, seed: int = 7) -> None:
    """Write records of users who walk and stay, in random order over several files."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    users = max(records // PER_USER, 1)
    each = records // users
    middles = rng.normal(0, 0.1, (2, users, 1)) + np.array([2.35, 48.85])[:, None, None]
    moves = np.repeat(rng.normal(0, 1e-4, (2, users, each // 600 + 1)), 600, axis=2)[:, :, :each]
    moves *= np.arange(each) // 600 % 3 == 0
    walks = np.cumsum(moves + rng.normal(0, 1.5e-6, moves.shape), axis=2) + middles
    times = 1_700_000_000 + np.cumsum(rng.integers(8, 13, (users, each)), axis=1)
    order = rng.permutation(users * each)
    names = pa.array([f"user-{number:06d}" for number in range(users)])
    lon, lat = (np.round(axis.ravel(), 6) for axis in walks)
    for number in range(files):
        rows = order[number::files]
        table = {
            "user": names.take(pa.array(rows // each)),
            "time": pa.array(times.ravel()[rows] * 10**9).cast(pa.timestamp("ns", "UTC")),
            "lon": lon[rows],
            "lat": lat[rows],
        }
        pq.write_table(pa.table(table), folder / f"{number:03d}.parquet", row_group_size=_GROUP)


def rewrite(source: Path, target: Path) -> None:
    """Read and write all files with pyarrow, a row group at a time."""
    target.mkdir()
    for path in sorted(source.iterdir()):
        file = pq.ParquetFile(path)
        with pq.ParquetWriter(target / path.name, file.schema_arrow, compression="zstd", compression_level=1) as writer:
            for group in range(file.num_row_groups):
                writer.write_table(file.read_row_group(group))


def run_task(task: str, source: str, target: str, epsilon: str) -> dict[str, float]:
    """Do a task in this process, and return seconds, processor time, gigabytes and records."""
    start, records = time.perf_counter(), 0
    if task == "rewrite":
        rewrite(Path(source), Path(target))
    elif task == "floor":  # read the input, and write the tables of a result that lies beside the target
        for path in sorted(Path(source).iterdir()):
            for _ in pq.ParquetFile(path).iter_batches(_GROUP):
                pass
        rewrite(Path(target).with_name("result"), Path(target))
    else:
        choices = {"encoding": "point"} if task == "protect-point" else {}
        records = pg.protect_parquet(source, target, pg.Promesse(float(epsilon)), **choices).protected_records
    seconds, spent = time.perf_counter() - start, os.times()
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return {"seconds": seconds, "cpu": spent.user + spent.system, "peak": peak * 1024 / 1e9, "records": records}


def measure_task(task: str, source: Path, target: Path, *, epsilon: float, rounds: int = 1) -> dict[str, float]:
    """Run a task in processes of its own, and return the round with the least processor time."""
    results = []
    for _ in range(rounds):
        shutil.rmtree(target, ignore_errors=True)
        command = [sys.executable, "-W", "ignore", __file__, task, str(source), str(target), str(epsilon)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        results.append(json.loads(done.stdout.splitlines()[-1]))
    return min(results, key=lambda result: result["cpu"])


if __name__ == "__main__":
    print(json.dumps(run_task(*sys.argv[1:])))
