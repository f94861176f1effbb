"""Planar Laplace noise, its lower bound, and conversions from and to GeoPandas."""

import argparse
import math
import os
import warnings
from pathlib import Path

import bounds
import numpy as np
import shapely
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from foundation import dense
from measure import in_turn, machine, table

import promesse_geo as pg

MECHANISM = pg.GeoIndistinguishability(math.log(4) / 200)


def stream(records: int) -> bytes:
    """Return the random blocks alone, as the mechanism draws them."""
    encryptor = Cipher(algorithms.AES256(os.urandom(32)), modes.ECB()).encryptor()
    return encryptor.update(np.arange(4 * records, dtype=np.uint32).data.cast("B"))


def main() -> None:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=8_000_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    traces = dense(options.records, traces=options.records // 20_000)
    seconds = in_turn(
        {
            "GeoIndistinguishability": lambda: MECHANISM.protect(traces),
            "the blocks alone": lambda: stream(traces.records),
            "the arithmetic alone": lambda: bounds.laplace(traces.records),
        }
    )
    rows = [(name, f"{took:.3f}", f"{traces.records / took / 1e6:.0f}") for name, took in seconds.items()]
    text = table(f"{traces.records / 1e6:.0f} M records", rows, head=("task", "s", "M records/s"))
    frame = dense(4_000_000, traces=200).to_frame()
    geometries = np.asarray(frame.geometry.array)
    coordinates = shapely.get_coordinates(geometries)
    seconds = in_turn(
        {
            "frame": lambda: MECHANISM.protect(frame),
            "in": lambda: shapely.get_coordinates(geometries),
            "out": lambda: shapely.points(coordinates),
        },
        rounds=5,
    )
    bound = seconds["in"] + seconds["out"]
    row = (f"{seconds['frame']:.2f}", f"{bound:.2f}", f"{seconds['frame'] / bound:.2f}")
    text += "\n" + table("GeoDataFrame, 4 M records", [row], head=("s", "get_coordinates + points s", "ratio"))
    text = f"# Noise\n\n{machine()}. Medians; comparisons alternate in one run.\n\n{text}"
    print(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
