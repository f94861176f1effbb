"""The demonstration: protect a synthetic city with Promesse."""

import warnings
from pathlib import Path

from promesse_geo.io.atomic import atomic_path
from promesse_geo.io.writers import check_output, write
from promesse_geo.mechanisms import Promesse, mechanism_in_words
from promesse_geo.messages import counted
from promesse_geo.plot.figures import overview
from promesse_geo.plot.tables import comparison
from promesse_geo.preprocess import prepare, pseudonymize
from promesse_geo.synthetic import make_city
from promesse_geo.validation import check_flag, check_path

_ZONE = "Europe/Paris"


def run_demo(folder: str | Path, *, epsilon: float = 200.0, force: bool = False) -> str:
    """Protect a synthetic city with Promesse, and write the published file and a figure to a folder.

    Parameters
    ----------
    folder : pathlib.Path
        Folder of `protected.parquet` and `overview.png`; created if it does not exist.
    epsilon : float
        Metres between published points.
    force : bool
        Whether to overwrite existing files.

    Returns
    -------
    str
        A table of both data sets, and commands to try next.

    Raises
    ------
    OSError, ValueError
        If files exist and `force` is False, files cannot be written, or all traces are too short for epsilon.

    Examples
    --------
    >>> import promesse_geo as pg, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> "What would be published" in pg.run_demo(folder)
    True
    >>> sorted(file.name for file in folder.iterdir())
    ['overview.png', 'protected.parquet']
    """
    mechanism = Promesse(epsilon)
    folder = check_path(folder, name="folder", owner="run_demo")
    check_flag(force, name="force", owner="run_demo")
    published, picture = folder / "protected.parquet", folder / "overview.png"
    if picture.exists() and not force:
        raise FileExistsError(
            f"The file {str(picture)!r} already exists. Pass force=True (--force), or another 'folder' (--out)."
        )
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{str(folder)!r} is a file. Specify another 'folder' (--out).")
    folder.mkdir(parents=True, exist_ok=True)
    check_output(published, force=force)
    city, stays = make_city(users=50, days=7, seed=0, as_traces=True, return_pois=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table says what was dropped
        parts = prepare(city, tz=_ZONE, keep_user=True)
        protected = mechanism.protect(parts)
    if len(protected) == 0:
        raise ValueError(f"All traces of the city are too short for epsilon = {epsilon:g} m. Specify a smaller one.")
    write(pseudonymize(protected), published, mechanism=mechanism, force=force)
    part = protected.users[:2].tolist()[-1]  # the second, if there are two
    drawn, person = parts.users.tolist().index(part), part.rpartition("-")[0]
    home_and_work = stays[(stays["user"] == person) & stays["kind"].isin(["home", "work"])]
    places = home_and_work.drop_duplicates("kind").set_index("kind").geometry
    with atomic_path(picture, force=force, private=False) as temporary:
        overview(parts, epsilon=epsilon, trace=drawn, places=places).savefig(temporary, dpi=150)
    dropped = len(parts) - len(protected)
    return f"""\
A synthetic city of {len(city)} people and 7 days, protected with {mechanism_in_words(mechanism.description())}:

{comparison(parts, protected)}

{counted(dropped, "trace was", "traces were")} too short to be protected and dropped.
What would be published:  {published}
What happened to a trace: {picture}

Next, on your own data:
  promesse-geo info    traces.csv
  promesse-geo publish traces.csv public.parquet --recommended people --tz Europe/Paris
or in Python:
  import promesse_geo as pg
  traces = pg.read_table("traces.csv")
  print(traces.promesse.publish("public.parquet", pg.recommended("people"), tz="Europe/Paris"))"""
