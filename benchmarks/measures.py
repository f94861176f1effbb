"""The metrics on real data, each with its lower bound."""

import argparse
import math
import warnings
from pathlib import Path

import bounds
import numpy as np
import shapely
from measure import in_turn, machine, table

import promesse_geo as pg
from data import add_cabspotting, commuters, prepared

QUERIES = 1000


def error(original: pg.Traces, protected: dict[str, pg.Traces]) -> str:
    """Measure the spatial error with a given index, the index, and one known segment per record."""
    metric = pg.SpatialError()
    index = metric.index(original)
    rows = []
    for name, safe in protected.items():
        seconds = in_turn(
            {
                "error": lambda s=safe: metric.detail(original, s, index=index),
                "known": lambda s=safe: bounds.feet(s.points),
                "index": lambda: metric.index(original),
            },
            rounds=3,
        )
        took = seconds["error"]
        rows.append(
            (
                name,
                f"{safe.records / 1e6:.1f}",
                f"{took:.2f}",
                f"{safe.records / took / 1e6:.2f}",
                f"{seconds['known']:.3f}",
                f"{seconds['index']:.2f}",
            )
        )
    head = ("data", "M records", "s", "M records/s", "one known segment each s", "index s")
    return table("Spatial error", rows, head=head)


def projection(original: pg.Traces, safe: pg.Traces) -> str:
    """Compare the projected points with the error alone and with the creation of shapely objects."""
    metric = pg.SpatialError()
    index = metric.index(original)
    x, y = safe.coordinates()
    seconds = in_turn(
        {
            "project, as a GeoSeries": lambda: metric.project(original, safe, index=index),
            "the error alone": lambda: metric.detail(original, safe, index=index),
            "shapely.points alone": lambda: shapely.points(x, y),
        },
        rounds=3,
    )
    rows = [(name, f"{took:.2f}", f"{safe.records / took / 1e6:.2f}") for name, took in seconds.items()]
    return table(f"Projection, {safe.records / 1e6:.1f} M records", rows, head=("task", "s", "M records/s"))


def queries(original: pg.Traces, safe: pg.Traces) -> str:
    """Measure range queries: one query, all on the original data, and all on the protected data."""
    metric, single = pg.RangeQueryDistortion(queries=QUERIES, seed=0), pg.RangeQueryDistortion(queries=1, seed=0)
    index = metric.index(original)
    seconds = in_turn(
        {
            "the index alone: one query drawn and answered": lambda: single.index(original),
            "index: queries drawn, and answered on the original": lambda: metric.index(original),
            "detail: answered on the protected data": lambda: metric.detail(original, safe, index=index),
            "every protected record in every window": lambda: bounds.windows(safe, index.content.windows),
        }
    )
    rows = [(name, f"{took:.3f}") for name, took in seconds.items()]
    title = f"{QUERIES:,} range queries, {original.records / 1e6:.1f} M records, {safe.records / 1e6:.1f} M protected"
    return table(title, rows, head=("task", "s"))


def rest(original: pg.Traces, safe: pg.Traces) -> str:
    """Compare POI retrieval with the attack that it includes, and measure compression."""
    retrieval, compression = pg.PoiRetrieval(), pg.Compression()
    index = retrieval.index(original)
    seconds = in_turn(
        {
            "PoiRetrieval": lambda: retrieval.detail(original, safe, index=index),
            "the attack on the protected data alone": lambda: retrieval.index(safe),
            "Compression": lambda: compression.detail(original, safe),
        }
    )
    rows = [(name, f"{took:.4f}", f"{safe.records / took / 1e6:.0f}") for name, took in seconds.items()]
    return table("Retrieval and compression", rows, head=("task", "s", "M records/s"))


def main() -> None:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_cabspotting(parser)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    original = prepared(options)
    name = "Cabspotting" if original is not None else "people, every 10 s"
    if original is None:
        original = commuters(200, 20_000, interval=10)
    noisy = pg.GeoIndistinguishability(math.log(10) / 100, seed=0).protect(original)
    protected = {"Geo-I ln10/100": noisy, "Promesse 200": pg.Promesse(200).protect(original)}
    parts = [error(original, protected)]
    del protected
    some = noisy.select(np.arange(noisy.records) < 2_000_000)
    parts += [projection(original, some), queries(original, noisy), rest(original, noisy)]
    title = f"# The metrics\n\n{machine()}. {name}. Medians; comparisons alternate in one run."
    text = f"{title}\n\n" + "\n".join(parts)
    print(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
