"""Attacks of other libraries, for a separate interpreter: `python peers.py data.parquet`.

Each input line names a library, and the output line is the number of stays that it finds. Its input is prepared before
the timing. Install the libraries with pip; infostop needs `setuptools<80` and `--no-build-isolation`.
"""

import sys
import warnings
from importlib.metadata import version

import geopandas as gpd
import numpy as np
import pandas as pd
import trackintel as ti
from infostop import Infostop

DIAMETER, MINUTES = 200, 15


def runs(labels):
    """Return the number of runs of equal labels; −1 is no label."""
    begins = np.flatnonzero(np.diff(labels, prepend=-2))
    return int((labels[begins] >= 0).sum())


def main():
    """Prepare the data, report the versions, and answer requests."""
    warnings.simplefilter("ignore")
    frame = pd.read_parquet(sys.argv[1])
    seconds = frame.time.dt.tz_localize(None).astype("datetime64[s]").astype(np.int64)
    rows = frame.assign(seconds=seconds)[["latitude", "longitude", "seconds"]].to_numpy()
    arrays = [rows[group] for group in frame.groupby("user").indices.values()]
    fixes = gpd.GeoDataFrame(
        {"user_id": frame.user, "tracked_at": frame.time},
        geometry=gpd.points_from_xy(frame.longitude, frame.latitude),
        crs=4326,
    )
    fixes.index.name = "id"
    fixes = ti.Positionfixes(fixes)

    def infostop():
        model = {"r1": DIAMETER, "r2": DIAMETER, "min_staying_time": 60 * MINUTES, "max_time_between": 3600}
        return sum(runs(Infostop(**model).fit_predict(array)) for array in arrays)

    def trackintel():
        limits = {"dist_threshold": DIAMETER, "time_threshold": MINUTES, "gap_threshold": 60, "include_last": True}
        return len(fixes.generate_staypoints(method="sliding", **limits)[1])

    names = {"infostop": infostop, "trackintel": trackintel}
    answers = sys.stdout
    sys.stdout = sys.stderr  # for the output of the libraries
    print("; ".join(f"{name} {version(name)}" for name in names), file=answers, flush=True)
    for line in sys.stdin:
        print(names[line.strip()](), file=answers, flush=True)


if __name__ == "__main__":
    main()
