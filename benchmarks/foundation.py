"""Promesse and its conversions: from the archive to a smoothed data set."""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import bounds
import numpy as np
import shapely
from measure import in_turn, machine, table

import promesse_geo as pg
from promesse_geo.mechanisms.promesse import _equal_steps
from promesse_geo.traces.records import as_offsets

START = 1_700_000_000_000_000_000


def dense(records: int, *, traces: int, seed: int = 0) -> pg.Traces:
    """Return paths at about 10 m/s with one record every 2 s and stays for half of the time, as from phones."""
    rng = np.random.default_rng(seed)
    turns = np.cumsum(rng.normal(0, 0.1, records))
    speeds = np.where((np.arange(records) // 3000) % 2, 10.0, 0.5)
    north, east = (np.cumsum(speeds * 2 * wave(turns)) for wave in (np.cos, np.sin))
    latitudes = 45.0 + 0.5 * np.sin(north / 60_000)
    longitudes = 5.0 + 0.5 * np.sin(east / 60_000)
    counts = np.full(traces, records // traces)
    total = int(counts.sum())
    times = START + np.tile(np.arange(records // traces) * 2_000_000_000, traces)
    return pg.Traces.from_arrays(
        longitudes[:total], latitudes[:total], times=times, users=list(range(traces)), counts=counts
    )


def points_and_times(mechanism: pg.Promesse, parts: pg.Traces) -> None:
    """Run what the bound covers: `protect` without naming the traces."""
    _, kept, begin, end = mechanism._sample(parts)
    remain = kept > 0
    _equal_steps(as_offsets(kept[remain]), begin[remain], end[remain])


def kernel(parts: pg.Traces, *, title: str) -> str:
    """Compare Promesse, with allocation, with its lower bound."""
    rows = []
    for variant in ("polyline", "pseudocode"):
        mechanism = pg.Promesse(200, variant=variant)
        outputs = mechanism.protect(parts).records
        seconds = in_turn(
            {
                "promesse": lambda m=mechanism: m.protect(parts),
                "kernel": lambda m=mechanism: points_and_times(m, parts),
                "bound": lambda n=outputs: bounds.chain(n),
                "stores": lambda n=outputs: bounds.stores(n),
            }
        )
        rows.append(
            (
                f"{variant}, {parts.records / 1e6:.1f} M in, {outputs / 1e6:.1f} M out",
                f"{seconds['promesse']:.3f}",
                f"{seconds['kernel']:.3f}",
                f"{seconds['bound']:.3f}",
                f"{seconds['kernel'] / seconds['bound']:.2f}",
                f"{seconds['stores']:.3f}",
                f"{parts.records / seconds['promesse'] / 1e6:.0f}",
            )
        )
    head = ("data", "protect s", "points and times s", "bound s", "ratio", "stores alone s", "M records/s in")
    return table(title, rows, head=head)


def conversions(traces: pg.Traces) -> str:
    """Convert degrees to unit vectors and back."""
    x, y = traces.coordinates()
    seconds = in_turn({"in": lambda: traces.space.points(x, y), "out": traces.coordinates})
    rows = [(name, f"{took:.3f}", f"{traces.records / took / 1e6:.0f}") for name, took in seconds.items()]
    return table(
        f"Traces and lon/lat arrays, {traces.records / 1e6:.1f} M records", rows, head=("way", "s", "M records/s")
    )


def frame_conversions(traces: pg.Traces, *, name: str) -> list[tuple[str, ...]]:
    """Compare `gdf.promesse.smooth(200)` with the conversions of shapely, also on shuffled rows."""
    frame = traces.to_frame()
    shuffled = frame.sample(frac=1, random_state=0)
    geometries = np.asarray(frame.geometry.array)
    safe = shapely.get_coordinates(np.asarray(frame.promesse.smooth(200).geometry.array))
    seconds = in_turn(
        {
            "smooth": lambda: frame.promesse.smooth(200),
            "in": lambda: shapely.get_coordinates(geometries),
            "out": lambda: shapely.points(safe),
            "shuffled": lambda: shuffled.promesse.smooth(200),
        },
        rounds=5,
    )
    bound = seconds["in"] + seconds["out"]
    return [
        (
            f"{name}: {len(frame) / 1e6:.1f} M in, {len(safe) / 1e6:.2f} M out",
            f"{seconds['smooth']:.2f}",
            f"{bound:.2f}",
            f"{seconds['smooth'] / bound:.2f}",
            f"{seconds['shuffled']:.2f}",
        )
    ]


def growth() -> str:
    """Measure the time per record from 10⁵ to 10⁷ records, and with all in one trace."""
    rows = []
    for records in (100_000, 1_000_000, 10_000_000):
        for traces in (max(records // 10_000, 2), 1):
            data = dense(records, traces=traces)
            took = in_turn({"smooth": lambda d=data: pg.Promesse(200).protect(d)})["smooth"]
            rows.append((f"{records:,}", f"{traces:,}", f"{took:.4f}", f"{took / records * 1e9:.1f}"))
    return table("Growth, dense data", rows, head=("records", "traces", "s", "ns a record"))


def pipeline(archive: Path) -> str:
    """Run the command line from the archive to GeoParquet, each step in a separate process."""
    command = [sys.executable, "-m", "promesse_geo.cli.commands"]
    with tempfile.TemporaryDirectory() as folder:
        prepared, safe = Path(folder) / "prepared.parquet", Path(folder) / "safe.parquet"
        steps = {
            "prepare": [str(archive), str(prepared), "--tz", "America/Los_Angeles", "--min-days", "21"],
            "smooth": [str(prepared), str(safe), "--epsilon", "200"],
        }
        rows, total = [], 0.0
        for step, arguments in steps.items():
            start = time.perf_counter()
            subprocess.run([*command, step, *arguments], check=True, capture_output=True)
            took = time.perf_counter() - start
            total += took
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
            rows.append((step, f"{took:.1f}", f"{peak:.2f}"))
        rows.append(("both", f"{total:.1f}", ""))
    return table("Command line, archive to GeoParquet", rows, head=("step", "s", "peak so far, GB"))


def start_up() -> str:
    """Measure imports and the first smoothing in a new process."""
    code = (
        "import time; a = time.perf_counter(); import geopandas; b = time.perf_counter();"
        "import promesse_geo as pg; c = time.perf_counter(); city = pg.make_city(users=2, days=1, recorder='phone');"
        "d = time.perf_counter(); city.promesse.smooth(200); print(b - a, c - b, time.perf_counter() - d)"
    )
    runs = [
        [
            float(word)
            for word in subprocess.run(
                [sys.executable, "-W", "ignore", "-c", code], check=True, capture_output=True, text=True
            ).stdout.split()
        ]
        for _ in range(5)
    ]
    geopandas, ours, first = np.median(runs, axis=0)
    rows = [
        ("import geopandas", f"{geopandas:.2f}"),
        ("import promesse_geo, on top", f"{ours:.2f}"),
        ("first smoothing in a fresh process", f"{first:.2f}"),
    ]
    return table("Start-up", rows, head=("task", "s"))


def main() -> None:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cabspotting", type=Path, help="cabspottingdata.tar.gz; without it, synthetic data only")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    parts = (
        [pipeline(options.cabspotting)] if options.cabspotting else []
    )  # first, because the memory of child processes counts
    quick = dense(4_000_000, traces=200)
    conversion_rows = frame_conversions(quick, name="dense")
    if options.cabspotting:
        start = time.perf_counter()
        raw = pg.read_cabspotting(options.cabspotting, as_traces=True)
        read = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        prepared = pg.prepare(raw, tz="America/Los_Angeles", min_days=21)
        del raw
        parts.append(kernel(prepared, title="Promesse, Cabspotting"))
        some = prepared.select(np.arange(prepared.records) < 4_000_000)
        conversion_rows += frame_conversions(some, name="Cabspotting")
        parts.append(conversions(prepared))
        rows = [(f"{read:.1f}", f"{peak:.2f}")]
        parts.append(table("Reading the archive as Traces", rows, head=("s", "peak so far, GB")))
        del prepared, some
    else:
        parts.append(conversions(quick))
    parts.append(kernel(quick, title="Promesse, dense data"))
    head = ("data", "smooth s", "get_coordinates + points s", "ratio", "shuffled rows s")
    parts += [table("GeoDataFrame in and out", conversion_rows, head=head), growth(), start_up()]
    text = f"# Foundation\n\n{machine()}. Medians; comparisons alternate in one run.\n\n" + "\n".join(parts)
    print(text)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
