"""Readers: records per second from files in their distributed form."""

import argparse
import resource
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from measure import in_turn, machine, table

import promesse_geo as pg
from promesse_geo.io.geolife import read_geolife

HEADER = "Geolife trajectory\r\nWGS 84\r\nAltitude is in Feet\r\nReserved 3\r\n0,2,255,My Track,0,0,2,8421376\r\n0\r\n"


def geolife_text(lines: int, *, seed: int) -> bytes:
    """Return one Geolife file with a record every 5 s."""
    rng = np.random.default_rng(seed)
    seconds = 1_224_730_384 + 5 * np.arange(lines)
    times = pd.to_datetime(seconds, unit="s").strftime("%Y-%m-%d,%H:%M:%S")
    places = np.array([39.98, 116.32]) + np.cumsum(rng.normal(0, 1e-4, (lines, 2)), axis=0)
    altitudes = rng.integers(-777, 900, lines)
    rows = zip(places, altitudes, seconds / 86_400 + 25_569, times, strict=True)
    return (HEADER + "".join(f"{y:.6f},{x:.6f},0,{a},{d:.10f},{t}\r\n" for (y, x), a, d, t in rows)).encode()


def make_geolife(folder: Path, *, users: int, files: int, lines: int) -> tuple[Path, Path]:
    """Write the folder and the zip; users share a few files, because generating them is slower than reading."""
    texts = [geolife_text(lines, seed=seed) for seed in range(min(20, files))]
    archive = folder / "geolife.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for user in range(users):
            place = folder / "Data" / f"{user:03d}" / "Trajectory"
            place.mkdir(parents=True)
            for file in range(files):
                text = texts[(user + file) % len(texts)]
                (place / f"{20081023000000 + file}.plt").write_bytes(text)
                packed.writestr(
                    f"Geolife Trajectories 1.3/Data/{user:03d}/Trajectory/{20081023000000 + file}.plt", text
                )
    return folder / "Data", archive


def geolife(*, users: int, files: int, lines: int) -> str:
    """Compare the folder and the zip with reading and decompressing the bytes on one core."""
    with tempfile.TemporaryDirectory() as name:
        folder, archive = make_geolife(Path(name), users=users, files=files, lines=lines)
        paths = sorted(folder.rglob("*.plt"))
        seconds = in_turn(
            {
                "folder": lambda: read_geolife(folder, as_traces=True),
                "files": lambda: [path.read_bytes() for path in paths],
                "zip": lambda: read_geolife(archive, as_traces=True),
                "members": lambda: inflate(archive),
            },
            rounds=5,
        )
    records = users * files * lines
    names = {
        "folder": "read_geolife, folder",
        "files": "the bytes of the files alone",
        "zip": "read_geolife, zip",
        "members": "decompressing the zip alone, one core",
    }
    rows = [(names[key], f"{took:.2f}", f"{records / took / 1e6:.1f}") for key, took in seconds.items()]
    title = f"Geolife's format, {records / 1e6:.1f} M records in {users * files:,} files"
    return table(title, rows, head=("task", "s", "M records/s"))


def inflate(archive: Path) -> list[bytes]:
    with zipfile.ZipFile(archive) as packed:
        return [packed.read(member) for member in packed.infolist()]


def cabspotting(archive: Path) -> str:
    """Read the real archive as Traces."""
    records = pg.read_cabspotting(archive, as_traces=True).records
    took = in_turn({"read": lambda: pg.read_cabspotting(archive, as_traces=True)}, rounds=3)["read"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    rows = [(f"{took:.1f}", f"{records / took / 1e6:.1f}", f"{peak:.2f}")]
    return table("Cabspotting, the archive as Traces", rows, head=("s", "M records/s", "peak so far, GB"))


def main() -> None:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cabspotting", type=Path, help="cabspottingdata.tar.gz; without it, only the Geolife format")
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--files", type=int, default=30, help="files per user")
    parser.add_argument("--lines", type=int, default=700, help="records per file")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    parts = [cabspotting(options.cabspotting)] if options.cabspotting else []
    parts.append(geolife(users=options.users, files=options.files, lines=options.lines))
    text = f"# Readers\n\n{machine()}. Medians; comparisons alternate in one run.\n\n" + "\n".join(parts)
    print(text)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
