"""promesse-geo measure, pois, reproduce: what an attacker finds, what an analyst loses, and the paper's tables."""

from datetime import timedelta
from pathlib import Path

import click

import promesse_geo as pg
from promesse_geo.cli.options import (
    as_pause,
    check_inputs_stay,
    force_option,
    in_plain_words,
    input_options,
    read,
    wrong_call,
)
from promesse_geo.evaluation.results import check_results_output
from promesse_geo.evaluation.runs import MOST_SEEDS
from promesse_geo.io.writers import check_output, write_pois
from promesse_geo.messages import counted
from promesse_geo.paper import reproduce as reproduce_paper
from promesse_geo.paper.report import check_report_folder
from promesse_geo.plot.tables import measures
from promesse_geo.stays.stays import checked_stay

_diameter = click.option(
    "--diameter", type=float, default=200, show_default=True, help="Metres between any two records of a stay, at most."
)
_duration = click.option(
    "--duration",
    default="15min",
    show_default=True,
    callback=as_pause,
    help="Least time of a stay, such as 15min; a number alone is seconds.",
)


@click.command(short_help="Say what is still found, and what is lost.")
@input_options
@click.argument("protected", metavar="PROTECTED")
@_diameter
@_duration
@click.option(
    "--threshold", type=float, default=100, show_default=True, help="Metres within which a POI is found again."
)
@click.option("--queries", type=click.IntRange(min=1), default=1000, show_default=True, help="Range queries to draw.")
@click.option("--seed", help="Makes the draw of range queries repeatable.")
@click.option("--out", metavar="FILE", help="Write the table to FILE as well: .csv or .parquet.")
@force_option
def measure(
    context: click.Context,
    protected: str,
    diameter: float,
    duration: timedelta,
    threshold: float,
    queries: int,
    seed: str | None,
    out: str | None,
    force: bool,
) -> None:
    """Say what an attacker still finds in PROTECTED, and what an analyst loses; INPUT is what it was made of.

    Traces are compared by their users: prepare, then protect the prepared file with --keep-users.
    """
    with wrong_call():
        metrics = (
            pg.PoiRetrieval(diameter, duration, threshold),
            pg.SpatialError(),
            pg.RangeQueryDistortion(queries, seed=seed),
            pg.Compression(),
        )
    with in_plain_words():
        if out is not None:
            check_inputs_stay(out, {"INPUT": context.obj["source"], "PROTECTED": protected}, name="--out")
            check_results_output(out, force=force)
        table = pg.measure(read(context), read(context, source=protected), metrics)
        click.echo(measures(table))
        if out is not None:
            pg.save_results(table, out, force=force)


@click.command(short_help="Find where users stayed, as the paper's attacker does.")
@input_options
@click.argument("output", metavar="OUTPUT")
@_diameter
@_duration
@force_option
def pois(context: click.Context, output: str, diameter: float, duration: timedelta, force: bool) -> None:
    """Find the points of interest in INPUT: places where users stayed.

    OUTPUT is .parquet, .gpkg, .geojson or .csv. It holds true places and user names: it is not for publication.
    GeoPackage and GeoJSON cut times to milliseconds.
    """
    with in_plain_words():
        check_inputs_stay(output, {"INPUT": context.obj["source"]})
        with wrong_call():
            check_output(output, force=force)
            checked_stay(diameter, duration, owner="pois")
        traces = read(context)
        found = pg.pois(traces, diameter, duration)
        write_pois(found, output, force=force)
        users = min(len(found), 1) if traces.names.user is None else found[traces.names.user].nunique()
        click.echo(
            f"{click.format_filename(output)}: {counted(len(found), 'point')} of interest in "
            f"{users:,} of {counted(len(traces), 'trace')}"
        )


@click.command(short_help="Repeat the paper's experiment: Tables I to VI.")
@click.option("--cabspotting", metavar="PATH", help="cabspottingdata.tar.gz, or its folder.")
@click.option("--geolife", metavar="PATH", help="Geolife's archive, or its folder.")
@click.option("--mdc", metavar="PATH", help="The folder or file of the Mobile Data Challenge.")
@click.option(
    "--min-days",
    type=click.IntRange(min=1),
    help="Leave out users with fewer days of data; by default 21 in real data, none in the made-up city.",
)
@click.option("--seeds", type=click.IntRange(1, MOST_SEEDS), default=3, show_default=True, help="How often to draw.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes to use; -1 is one per processor.")
@click.option("--attacks", is_flag=True, help="Go beyond the paper: stronger attacks and area coverage, with one seed.")
@click.option("--out", metavar="DIR", default="promesse-tables", show_default=True, help="Folder to write to.")
@force_option
def reproduce(
    cabspotting: str | None,
    geolife: str | None,
    mdc: str | None,
    min_days: int | None,
    seeds: int,
    jobs: int,
    attacks: bool,
    out: str,
    force: bool,
) -> None:
    """Repeat the paper's experiment from raw files, its figures beside ours.

    Writes Tables I to VI as CSV, and a report as Markdown and as an HTML page that stands alone. Without any path a
    made-up city takes the place of the data, for which the paper has no figures.
    """
    with in_plain_words():
        folder = Path(out)
        check_inputs_stay(out, {"--cabspotting": cabspotting, "--geolife": geolife, "--mdc": mdc}, name="--out")
        check_report_folder(folder, force=force)
        done = reproduce_paper(
            cabspotting=cabspotting,
            geolife=geolife,
            mdc=mdc,
            min_days=min_days,
            seeds=seeds,
            n_jobs=jobs,
            attacks=attacks,
        )
        for path in done.save(folder, force=force):
            click.echo(click.format_filename(path))


COMMANDS = (measure, pois, reproduce)
