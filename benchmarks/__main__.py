"""All benchmarks that need no real data, in one table: `python -m benchmarks`.

    python -m benchmarks --up-to 1e6
    python -m benchmarks --peers /tmp/peers --out benchmarks/results/summary.md

Each row has our result, what it is compared with, and the ratio; `--picture` draws them. `--up-to`
bounds the records of the growth in memory and from files to files. With `--peers`, other libraries are installed into
environments of their own in a folder; those that cannot be installed are named with the reason.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent))  # the other files are scripts, which import each other

import bounds
from folders import measure_task, write_walks
from foundation import dense
from measure import in_turn, machine, table

import promesse_geo as pg
from data import commuters

_HEAD = ("what", "ours", "beside", "theirs", "ratio")
_LAPLACE = pg.GeoIndistinguishability.from_level(4, radius=200)
_READ = """
import sys, time, warnings
warnings.simplefilter("ignore")
import pandas as pd
frame = pd.read_csv(sys.argv[1], parse_dates=["time"])
{prepare}
start = time.perf_counter()
{run}
print(time.perf_counter() - start)
"""
_PREPARE = (
    """
import geopandas as gpd, trackintel as ti
frame = frame.rename(columns={"user": "user_id", "time": "tracked_at"})
fixes = ti.Positionfixes(gpd.GeoDataFrame(frame, geometry=gpd.points_from_xy(frame.lon, frame.lat), crs=4326))
fixes.index.name = "id"
""",
    """
from infostop import Infostop
frame["time"] = frame.time.dt.tz_localize(None).astype("datetime64[s]").astype("int64")
arrays = [frame[["lat", "lon", "time"]].to_numpy()[rows] for rows in frame.groupby("user").indices.values()]
model = {"r1": 200, "r2": 200, "min_staying_time": 900, "max_time_between": 3600}
""",
    """
import skmob
from skmob.preprocessing import detection
find = getattr(detection, "stay_locations", None) or detection.stops  # its name before version 1.2
data = skmob.TrajDataFrame(frame.assign(time=frame.time.dt.tz_localize(None)), longitude="lon", latitude="lat",
                           datetime="time", user_id="user")
""",
)
_RUN = (
    "fixes.generate_staypoints(dist_threshold=200, time_threshold=15, gap_threshold=60, include_last=True)",
    "for array in arrays: Infostop(**model).fit_predict(array)",
    "find(data, minutes_for_a_stop=15, spatial_radius_km=0.1)",
)
_INSTALL = (
    [["trackintel"]],
    [["setuptools<80", "wheel", "numpy", "pybind11", "pandas"], ["--no-build-isolation", "infostop"]],
    [["--only-binary=:all:", "scikit-mobility", "numpy<2", "pandas<2", "shapely<2", "geopandas<1"]],
)
_PEERS = dict(
    zip(("trackintel", "infostop", "scikit-mobility"), zip(_INSTALL, _PREPARE, _RUN, strict=True), strict=True)
)


class Row(NamedTuple):
    """One comparison: seconds of ours and of the other, for a number of records; a note if there are none."""

    what: str
    records: int
    ours: float
    beside: str
    theirs: float
    resources: tuple[str, str] = ("", "")
    note: str = ""
    unit: str = "s"

    def words(self) -> tuple[str, ...]:
        """Return the cells of a table."""
        if self.note:
            return f"{self.what}, {self.records:,} records", self._number(self.ours), self.beside, self.note, ""
        return (
            f"{self.what}, {self.records:,} records",
            self._number(self.ours) + self.resources[0],
            self.beside,
            self._number(self.theirs) + self.resources[1],
            _short(self.ours / self.theirs),
        )

    def _number(self, seconds: float) -> str:
        if self.unit == "ns":
            return f"{seconds / self.records * 1e9:.1f} ns a record"
        return f"{seconds:.3f} s" if seconds < 1 else f"{seconds:.1f} s"


def kernels(records: int) -> Iterator[Row]:
    """Compare kernels with their lower bounds."""
    data = dense(records, traces=max(records // 10_000, 1))
    for epsilon in (200, 5):
        mechanism = pg.Promesse(epsilon)
        outputs = mechanism.protect(data).records
        seconds = in_turn(
            {
                "ours": lambda m=mechanism: m.protect(data),
                "bound": lambda n=outputs: (bounds.read(data.points), bounds.chain(n)),
            }
        )
        beside = f"one pass over the records, a root and two divisions for each of {outputs:,} outputs"
        yield Row(f"Promesse({epsilon})", records, seconds["ours"], beside, seconds["bound"])
    seconds = in_turn({"ours": lambda: _LAPLACE.protect(data), "bound": lambda: bounds.laplace(records)})
    yield Row("planar Laplace noise", records, seconds["ours"], "its arithmetic", seconds["bound"])


def growth(up_to: int) -> Iterator[Row]:
    """Measure the time of a record for growing data, beside that of 10⁵ records."""
    first = 0.0
    for records in _sizes(up_to):
        data = dense(records, traces=max(records // 10_000, 1))
        took = in_turn({"ours": lambda d=data: pg.Promesse(200).protect(d)}, rounds=3)["ours"]
        first = first or took / records
        yield Row("Promesse(200) in memory", records, took, "10⁵ records", first * records, unit="ns")


def folders(up_to: int) -> Iterator[Row]:
    """Measure files to files, beside pyarrow that reads the input and writes the tables of the result."""
    for records in _sizes(up_to):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_walks(folder / "in", records, files=max(records // 5_000_000, 4))
            floor = measure_task("rewrite", folder / "in", folder / "out", epsilon=0)
            for epsilon in (200, 5):
                ours = measure_task("protect", folder / "in", folder / "result", epsilon=epsilon)
                other = "pyarrow, which reads and rewrites the input"
                if epsilon == 5:
                    floor = measure_task("floor", folder / "in", folder / "out", epsilon=0)
                    other = "pyarrow, which reads the input and writes the result"
                resources = (_in_words(ours), _in_words(floor))
                yield Row(f"folder, ε = {epsilon}", records, ours["seconds"], other, floor["seconds"], resources)


def peers(folder: Path, records: int) -> Iterator[Row]:
    """Compare stays with other libraries, each in an environment of its own."""
    traces = commuters(max(records // 20_000, 1), 20_000, interval=10)
    seconds = in_turn({"ours": lambda: pg.pois(traces)}, rounds=3)["ours"]
    row = Row("stays", traces.records, seconds, "", 1.0)
    lon, lat = traces.coordinates()
    users = np.repeat(traces.users.to_numpy(), traces.counts)
    times = pd.DatetimeIndex(traces.times, tz="UTC")
    data = folder / "stays.csv"
    pd.DataFrame({"user": users, "time": times, "lon": lon, "lat": lat}).to_csv(data, index=False)
    for peer, (steps, prepare, run) in _PEERS.items():
        python, reason = _install(folder / peer, steps)
        if not reason:
            command = [str(python), "-c", _READ.format(prepare=prepare, run=run), str(data)]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            reason = f"installed, but fails: {_reason(done.stderr)}" if done.returncode else ""
        if reason:
            yield row._replace(beside=peer, note=reason)
        else:
            yield row._replace(beside=peer, theirs=float(done.stdout.splitlines()[-1]))


def _install(folder: Path, steps: list[list[str]]) -> tuple[Path, str]:
    """Make an environment with packages; return its interpreter, and why it could not be made."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    for packages in steps:
        command = [str(python), "-m", "pip", "install", "-q", *packages]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            return python, f"not installed: {_reason(done.stderr)}"
    return python, ""


def _short(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.1g}"


def _reason(text: str) -> str:
    """Return the last line of an output that names an error, else the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(\w+\.)*\w*(Error|error):", line)]
    return (errors or lines or ["no reason given"])[-1][:160].replace("|", "/")


def _sizes(up_to: int) -> list[int]:
    return [size for size in (10**5, 10**6, 10**7, 10**8) if size <= up_to]


def _in_words(result: dict[str, float]) -> str:
    return f" ({result['cpu']:.1f} s of processor time, {result['peak']:.2f} GB)"


def draw(rows: Iterable[Row], path: Path) -> None:
    """Draw how the time of a record grows, and how our times compare with bounds and other libraries."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=(3, 4), layout="constrained")
    compared = [row for row in rows if not row.note]
    for name in dict.fromkeys(row.what for row in compared if row.what.startswith(("folder", "Promesse(200) in"))):
        line = [row for row in compared if row.what == name]
        times = [row.ours / row.records * 1e9 for row in line]
        left.plot([row.records for row in line], times, marker="o", label=name)
    left.set(xscale="log", yscale="log", xlabel="records", ylabel="ns a record")
    left.legend(frameon=False)
    largest = list({(row.what, row.beside.partition(",")[0]): row for row in compared if row.unit == "s"}.values())
    ratios = np.array([row.ours / row.theirs for row in largest])
    places = np.arange(len(largest))
    right.hlines(places, np.minimum(ratios, 1), np.maximum(ratios, 1), color="C0", linewidth=9)
    right.axvline(1, color="0.4", linewidth=1)
    for place, ratio, row in zip(places, ratios, largest, strict=True):
        words = f"{_short(ratio)} × {row.beside.partition(',')[0]}"
        right.annotate(words, (max(ratio, 1), place), (6, 0), textcoords="offset points", va="center")
    right.set_yticks(places, [f"{row.what},\n{row.records:,} records" for row in largest])
    right.set(xscale="log", xlabel="our time relative to the bound, pyarrow or the other library", ylim=(-0.6, None))
    right.set_xlim(min(ratios.min(), 0.5) / 2, 40 * max(ratios.max(), 1))
    right.invert_yaxis()
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measure, and print and write one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--up-to", type=float, default=1e7, help="greatest number of records: 1e5 to 1e8")
    parser.add_argument("--peers", type=Path, help="a folder for environments with other libraries")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "summary.md")
    pictures = Path(__file__).parent.parent / "docs" / "pictures"
    parser.add_argument("--picture", type=Path, default=pictures / "benchmarks.png")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    up_to = int(options.up_to)
    rows = [*kernels(min(up_to, 10**7)), *growth(up_to), *folders(up_to)]
    if options.peers:
        options.peers.mkdir(parents=True, exist_ok=True)
        rows += peers(options.peers, min(up_to, 4_000_000))
    about = f"{machine()}. Medians in memory. `python -m benchmarks` writes this table."
    title = f"Up to {up_to:,} records"
    text = f"# Summary\n\n{about}\n\n" + table(title, [row.words() for row in rows], head=_HEAD)
    print(text)
    options.out.write_text(text, encoding="utf-8")
    draw(rows, options.picture)


if __name__ == "__main__":
    main()
