"""What the ends of traces give away: a table over epsilon, ends and zones, from which `publish` recommends.

`python benchmarks/ends.py [--cabspotting cabspottingdata.tar.gz] [--out data/results/ends]` writes the tables.
`--no-city` and `--no-near` leave out the table of all combinations, and that of what is near the recommendation.
"""

import argparse
import itertools
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import geopandas as gpd
import pandas as pd

import promesse_geo as pg
from data import add_cabspotting

SEEDS = tuple(range(10))
"""Seeds of the cities, and of the cuts and displacements in them."""

Radii = tuple[float, float] | None  # of zones: radius and offset in metres
ZONES: tuple[Radii, ...] = (None, (500, 400), (600, 500), (650, 600), (700, 600), (800, 700))
ENDS = (0, 200, 400, 600, 1_000, 2_000, 3_000)
EPSILONS = (100, 200, 300, 500)
CABS: dict[Radii, list[tuple[int, int]]] = {
    None: [
        (100, 0),
        (200, 0),
        (500, 0),
        (100, 1_000),
        (200, 400),
        (200, 1_000),
        (200, 2_000),
        (500, 1_000),
        (500, 2_000),
    ],
    (700, 600): [(200, 0), (200, 400)],
}
NEAR: tuple[tuple[tuple[float, float], int], ...] = (((700, 600), 400), ((650, 600), 400))
"""Zones and ends at ε = 200 m, those that are recommended first, that are tried with all recorders and secrets."""

SECRETS = ("", "-a")
FULL = 200  # the epsilon at which all ends are tried; at the others 0, 600 and 2,000 are
FEW = (0, 400, 600, 1_000, 2_000)


def grid() -> Iterator[tuple[Radii, list[tuple[int, int]]]]:
    """Yield zones, and the epsilons and ends to try with them."""
    for zones in ZONES:
        yield (
            zones,
            [
                (epsilon, ends)
                for epsilon, ends in itertools.product(EPSILONS, ENDS)
                if (epsilon == FULL or (ends in FEW and zones in (None, (700, 600)))) and (ends == 0 or ends >= epsilon)
            ],
        )


def homes_of(pois: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """Return the home of each user."""
    return pois[pois["kind"] == "home"].drop_duplicates("user")[["user", "geometry"]]


def run(parts: pg.Traces, metric: pg.EndRetrieval, tried, *, seed: int) -> Iterator[dict]:
    """Yield a row for raw data and for each combination: what the best strategy locates, and what is kept."""
    index = metric.index(parts)
    plain = pg.Promesse(FULL).protect(parts).records

    def measure(protected: pg.Traces, **columns) -> dict:
        detail = metric.detail(parts, protected, index=index)
        steps = {name: 100 * float((detail[name] <= metric.threshold).mean()) for name in detail if name != "ends"}
        best = {"located": metric.value(detail), "strategy": detail.attrs["strategy"], "owners": len(detail)}
        return {"seed": seed, **columns, **best, "kept": 100 * protected.records / plain, **steps}

    yield measure(parts, zones="raw", epsilon=0, ends=0) | {"kept": float("nan")}
    for zones, levels in tried:
        mechanism = None if zones is None else pg.PrivacyZones(*zones, seed=seed)
        placed = None if mechanism is None else mechanism.place(parts)
        around = parts if placed is None else placed.cut(parts)
        for epsilon, ends in levels:
            smooth = pg.Promesse(epsilon, ends=ends, seed=seed if ends else None)
            protected = smooth.protect(around)
            protected = protected if placed is None else placed.cut(protected)  # as Chain and publish do
            name = "none" if zones is None else f"{zones[0]:g}/{zones[1]:g}"
            yield measure(protected, zones=name, epsilon=epsilon, ends=ends)


def city_rows(seeds: tuple[int, ...]) -> Iterator[dict]:
    """Yield the rows of cities of 50 users and 14 days, split at gaps of 4 hours."""
    for seed in seeds:
        started = time.perf_counter()
        city, pois = pg.make_city(users=50, days=14, seed=seed, recorder="phone", return_pois=True, as_traces=True)
        parts = pg.split_gaps(city, "4h", keep_user=True)
        yield from run(parts, pg.EndRetrieval(truth=homes_of(pois)), grid(), seed=seed)
        print(f"city {seed}: {time.perf_counter() - started:.0f} s", flush=True)


def near_rows(seeds: tuple[int, ...]) -> Iterator[dict]:
    """Yield what is recommended, and what is near it, for people with phones and with devices switched on for trips.

    `located` is the percentage of homes, `place` that of the places where most traces of a user begin or end.
    """
    for recorder, seed in itertools.product(("phone", "trips"), seeds):
        city, pois = pg.make_city(users=50, days=14, seed=seed, recorder=recorder, return_pois=True, as_traces=True)
        parts = pg.split_gaps(city, "4h", keep_user=True)
        metrics = {"located": pg.EndRetrieval(truth=homes_of(pois)), "place": pg.EndRetrieval()}
        known = {name: metric.index(parts) for name, metric in metrics.items()}
        plain = pg.Promesse(FULL).protect(parts).records
        for secret, (radii, ends) in itertools.product(SECRETS, NEAR):
            chosen = f"{seed}{secret}"
            mechanism = pg.Chain([pg.PrivacyZones(*radii, seed=chosen), pg.Promesse(FULL, ends=ends, seed=chosen)])
            safe = mechanism.protect(parts)
            found = {
                name: metric.value(metric.detail(parts, safe, index=known[name])) for name, metric in metrics.items()
            }
            row = {
                "recorder": recorder,
                "seed": seed,
                "secret": secret,
                "zones": f"{radii[0]}/{radii[1]}",
                "ends": ends,
            }
            yield row | {"kept": 100 * safe.records / plain} | found


def summarize_near(rows: pd.DataFrame) -> pd.DataFrame:
    """Return means over seeds and secrets, with the worst run, and the least and greatest mean of a secret."""
    keys = ["recorder", "zones", "ends"]
    groups = rows.groupby(keys, sort=False)
    table = groups.agg(kept=("kept", "mean"), located=("located", "mean"), worst=("located", "max"))
    by_secret = rows.groupby([*keys, "secret"], sort=False)["located"].mean().groupby(keys, sort=False)
    table = table.assign(least_secret=by_secret.min(), most_secret=by_secret.max(), place=groups["place"].mean())
    return table.round(1).reset_index()


def cab_rows(archive: Path) -> Iterator[dict]:
    """Yield the rows of Cabspotting as prepared; places from the data, no rays, which take long and find less."""
    raw = pg.read_cabspotting(archive, as_traces=True)
    parts = pg.prepare(raw, tz="America/Los_Angeles", keep_user=True)
    yield from run(parts, pg.EndRetrieval(rays=False), CABS.items(), seed=0)


def summarize(rows: pd.DataFrame) -> pd.DataFrame:
    """Return means over seeds, with the worst seed, in the order of the rows."""
    keys = ["zones", "epsilon", "ends"]
    groups = rows.groupby(keys, sort=False)
    table = groups.agg(kept=("kept", "mean"), located=("located", "mean"), worst=("located", "max"))
    strategies = rows.columns[rows.columns.str.startswith(("step_", "rays"))]
    return table.join(groups[list(strategies)].mean()).round(1).reset_index()


def main() -> None:
    """Measure, and write a table of all rows and one of means for each data set."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_cabspotting(parser)
    parser.add_argument("--out", type=Path, default=Path("data/results/ends"))
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    parser.add_argument("--no-city", action="store_true")
    parser.add_argument("--no-near", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", UserWarning)  # what was dropped
    seeds = SEEDS[: options.seeds]
    sources = {} if options.no_city else {"city": city_rows(seeds)}
    sources |= {} if options.no_near else {"recommended": near_rows(seeds)}
    if options.cabspotting:
        sources["cabspotting"] = cab_rows(options.cabspotting)
    for name, source in sources.items():
        rows = []
        for row in source:
            rows.append(row)
            pd.DataFrame(rows).round(4).to_csv(options.out / f"{name}_runs.csv", index=False)
        table = (summarize_near if name == "recommended" else summarize)(pd.DataFrame(rows))
        table.to_csv(options.out / f"{name}.csv", index=False)
        print(table.to_string(), flush=True)


if __name__ == "__main__":
    main()
