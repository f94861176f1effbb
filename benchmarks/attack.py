"""The attack: find stays in real, dense and worst-case data, and compare with other libraries."""

import argparse
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import bounds
import pandas as pd
from foundation import dense
from measure import in_turn, machine, table

import promesse_geo as pg
from data import add_cabspotting, circle, cloud, commuters, creep, prepared
from promesse_geo.stays.stays import Pois, find_pois

DIAMETER, MINUTES = 200.0, 15.0
DIAMETERS = 10, 20, 50, 100, 200, 500, 1000
DURATIONS = 10, 15, 60, 200, 1000


def attack(traces: pg.Traces, *, diameter: float = DIAMETER, minutes: float = MINUTES) -> Pois:
    """Find stays, with their means and diameters."""
    return find_pois(traces, diameter=diameter, duration=int(60e9 * minutes))


def kinds(real: pg.Traces | None) -> str:
    """Compare sparse and dense data with one read of their records."""
    cases = {} if real is None else {"Cabspotting": real}
    for interval in (1, 2, 5):
        cases[f"people, every {interval} s"] = commuters(200, 20_000, interval=interval)
    cases["walks with rests, every 2 s"] = dense(4_000_000, traces=200)
    rows = []
    for name, traces in cases.items():
        seconds = in_turn({"attack": lambda t=traces: attack(t), "read": lambda t=traces: bounds.read(t.points)})
        took = seconds["attack"]
        rows.append(
            (
                name,
                f"{traces.records / 1e6:.1f}",
                f"{len(attack(traces)):,}",
                f"{took:.3f}",
                f"{seconds['read']:.3f}",
                f"{traces.records / took / 1e6:.0f}",
            )
        )
    head = ("data", "M records", "stays", "s", "one read s", "M records/s")
    return table(f"Stays of {DIAMETER:.0f} m and {MINUTES:.0f} minutes", rows, head=head)


def worst() -> str:
    """Measure worst cases: each record is close to the border of the stay, or the stay never ends."""
    cases = {
        "a rest, Gaussian 25 m, 86,400 records": cloud(86_400),
        "circle of 99.9 m, 86,400 records": circle(86_400, radius=99.9),
        "circle of 99.9 m, 1 M records": circle(1_000_000, radius=99.9),
        "circle of 99.99 m, 86,400 records": circle(86_400, radius=99.99),
        "circle of 99.999 m, 86,400 records": circle(86_400, radius=99.999),
        "creep of 0.2 m/s at 100 Hz, 1 M records": creep(1_000_000, speed=0.2),
        "creep of 0.25 m/s at 100 Hz, 1 M records": creep(1_000_000, speed=0.25),
        "creep of 1 m/s at 100 Hz, 1 M records": creep(1_000_000, speed=1.0),
    }
    rows = []
    for name, traces in cases.items():
        took = in_turn({"attack": lambda t=traces: attack(t)}, rounds=5)["attack"]
        rows.append((name, f"{len(attack(traces)):,}", f"{took:.4f}", f"{traces.records / took / 1e6:.1f}"))
    return table("Worst cases, one trace each", rows, head=("data", "stays", "s", "M records/s"))


def spread(traces: pg.Traces, *, name: str) -> str:
    """Measure diameters and durations alternately."""
    grid = [(diameter, minutes) for diameter in DIAMETERS for minutes in DURATIONS]
    tasks = {str(cell): lambda c=cell: attack(traces, diameter=c[0], minutes=c[1]) for cell in grid}
    seconds = in_turn(tasks, rounds=11)
    rows = [
        (f"{diameter}", *(f"{seconds[str((diameter, minutes))]:.3f}" for minutes in DURATIONS))
        for diameter in DIAMETERS
    ]
    ratio = max(seconds.values()) / min(seconds.values())
    title = f"Seconds over diameters and durations, {name}: the slowest takes {ratio:.2f} times the fastest"
    return table(title, rows, head=("diameter m", *(f"{minutes} min" for minutes in DURATIONS)))


@contextmanager
def waiting(interpreter: Path, traces: pg.Traces) -> Iterator[subprocess.Popen[str]]:
    """Run the other libraries in a separate process, on the same data."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.parquet"
        x, y = traces.coordinates()
        users = traces.users.take(traces.trace_numbers)
        columns = {"user": users, "time": traces.time_index(), "longitude": x, "latitude": y}
        pd.DataFrame(columns).to_parquet(path)
        command = [str(interpreter), str(Path(__file__).with_name("peers.py")), str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            yield process
            process.stdin.close()


def beside(interpreter: Path) -> str:
    """Compare with other libraries alternately: one record every 10 s, 4 M records."""
    traces = commuters(200, 20_000, interval=10)
    frame = traces.to_frame()
    stays = {"Traces": len(attack(traces)), "GeoDataFrame": len(pg.pois(frame))}
    with waiting(interpreter, traces) as process:
        versions = process.stdout.readline().strip()

        def ask(name: str) -> None:
            process.stdin.write(f"{name}\n")
            process.stdin.flush()
            stays[name] = int(process.stdout.readline())

        seconds = in_turn(
            {
                "Traces": lambda: attack(traces),
                "GeoDataFrame": lambda: pg.pois(frame),
                "infostop": lambda: ask("infostop"),
                "trackintel": lambda: ask("trackintel"),
            },
            rounds=3,
        )
    rows = [
        (
            name if name in versions else f"ours, from {name}",
            f"{stays[name]:,}",
            f"{took:.3f}",
            f"{traces.records / took / 1e6:.2f}",
            f"{took / seconds['Traces']:.1f}",
        )
        for name, took in seconds.items()
    ]
    title = f"Compared with {versions}, {traces.records / 1e6:.1f} M records; each with its own input type"
    return table(title, rows, head=("task", "stays", "s", "M records/s", "times ours"))


def main() -> None:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_cabspotting(parser)
    parser.add_argument("--peers", type=Path, help="an interpreter that has infostop and trackintel")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    real = prepared(options)
    parts = [kinds(real), worst(), spread(commuters(200, 20_000, interval=2), name="people every 2 s")]
    if real is not None:
        parts.append(spread(real, name="Cabspotting"))
        del real
    if options.peers:
        parts.append(beside(options.peers))
    text = f"# The attack\n\n{machine()}. Medians; comparisons alternate in one run.\n\n" + "\n".join(parts)
    print(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
