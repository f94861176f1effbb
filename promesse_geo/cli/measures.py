"""Commands that measure: measure, report, pois, reproduce."""

from datetime import timedelta
from pathlib import Path

import click

import promesse_geo as pg
from promesse_geo.audit import file_mechanism
from promesse_geo.cli import layout, options, values
from promesse_geo.cli.errors import expected_errors, usage_errors, with_options_named
from promesse_geo.cli.publish import MECHANISMS, make_mechanism
from promesse_geo.evaluation.arguments import MOST_SEEDS
from promesse_geo.evaluation.results import check_results_output
from promesse_geo.io.atomic import check_target
from promesse_geo.io.writers import check_output, write_pois
from promesse_geo.messages import counted
from promesse_geo.plot.page import ENDINGS
from promesse_geo.plot.tables import measures
from promesse_geo.stays.stays import checked_stay
from promesse_geo.validation import check_ending

_diameter = click.option(
    "--diameter",
    type=values.NUMBER,
    metavar="METRES",
    default=200,
    show_default=True,
    help="Maximum distance between two records of a stay.",
)
_duration = click.option(
    "--duration",
    default="15min",
    metavar="DURATION",
    show_default=True,
    callback=options.as_duration,
    help="Minimum duration of a stay, such as 15min; a number alone is seconds.",
)


@layout.command(short_help="Measure privacy and utility.")
@options.input_options
@click.argument("protected", metavar="PROTECTED")
@_diameter
@_duration
@click.option(
    "--threshold",
    type=values.NUMBER,
    metavar="METRES",
    default=100,
    show_default=True,
    help="Maximum distance at which a POI counts as found.",
)
@click.option(
    "--queries",
    type=values.Whole(min=1),
    metavar="NUMBER",
    default=1000,
    show_default=True,
    help="Range queries to draw.",
)
@click.option(
    "--seed",
    type=values.SEED,
    metavar="SEED",
    help="Seed of the range queries, which differ from run to run without it.",
)
@click.option("--out", metavar="FILE", help="Write the table to FILE as well: .csv or .parquet.")
@options.force_option
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
    """Measure the privacy and utility of PROTECTED, made from INPUT.

    Traces are compared by their users: prepare INPUT, then protect the prepared file with --keep-users.
    """
    with usage_errors():
        metrics = (
            pg.PoiRetrieval(diameter, duration, threshold),
            pg.SpatialError(),
            pg.RangeQueryDistortion(queries, seed=seed),
            pg.Compression(),
        )
    with expected_errors():
        if out is not None:
            options.check_not_input(out, {"INPUT": context.obj["source"], "PROTECTED": protected}, name="--out")
            with usage_errors():  # of the extension
                check_results_output(out, force=force)
        table = pg.measure(*options.read_both(context, protected), metrics)
        click.echo(measures(table, metrics))
        if seed is None:
            layout.say("Range queries are drawn at random: their value differs from run to run. --seed repeats them.")
        if out is not None:
            pg.save_results(table, out, force=force)


@layout.command(short_help="Report the risks of PROTECTED as an HTML page.")
@options.input_options
@click.argument("protected", metavar="PROTECTED")
@click.argument("output", metavar="OUTPUT")
@click.option(
    "--mechanism", type=click.Choice(list(MECHANISMS)), help="The protection; by default as PROTECTED names it."
)
@click.option("--epsilon", type=values.NUMBER, metavar="VALUE", help="Parameter of the mechanism.")
@click.option("--parameter", multiple=True, metavar="NAME=VALUE", help="Another parameter; may be repeated.")
@click.option("--seed", type=values.SEED, metavar="SEED", help="Seed of known points, queries and guesses.")
@options.force_option
def report(
    context: click.Context,
    protected: str,
    output: str,
    mechanism: str | None,
    epsilon: float | None,
    parameter: tuple[str, ...],
    seed: str | None,
    force: bool,
) -> None:
    """Report what attackers find in PROTECTED, made from INPUT, as one HTML page for those who decide on publication.

    INPUT is what was protected: prepare it first, with --keep-users. PROTECTED must have the users of INPUT
    (--keep-users). The page has no positions and no names.
    """
    with usage_errors():
        check_ending(Path(output), ENDINGS, name="output", owner="report")
        if mechanism is None and (epsilon is not None or parameter):
            raise click.UsageError("--epsilon and --parameter belong to a mechanism. Specify --mechanism as well.")
        named = None if mechanism is None else make_mechanism(mechanism, {"epsilon": epsilon}, parameter)
    with expected_errors():
        options.check_not_input(output, {"INPUT": context.obj["source"], "PROTECTED": protected})
        check_target(output, force=force)
        before, after = options.read_both(context, protected)
        used = file_mechanism(protected) if named is None else named
        found = pg.report(before, after, output, mechanism=used, seed=seed, force=force)
        click.echo(with_options_named(str(found)))


@layout.command(short_help="Find stays of users, as the paper's attack does.")
@options.input_options
@click.argument("output", metavar="OUTPUT")
@_diameter
@_duration
@options.force_option
def pois(context: click.Context, output: str, diameter: float, duration: timedelta, force: bool) -> None:
    """Find the points of interest in INPUT: where users stayed.

    OUTPUT is .parquet, .gpkg, .fgb, .geojson or .csv. It contains true locations and user names: do not publish it.
    Times are cut to milliseconds in GeoPackage, FlatGeobuf and GeoJSON.
    """
    with expected_errors():
        options.check_not_input(output, {"INPUT": context.obj["source"]})
        with usage_errors():
            check_output(output, force=force, holds_traces=False)
            checked_stay(diameter, duration, owner="pois")
        traces = options.read(context)
        found = pg.pois(traces, diameter, duration)
        write_pois(found, output, force=force)
        users = min(len(found), 1) if traces.names.user is None else found[traces.names.user].nunique()
        click.echo(
            f"{click.format_filename(output)}: {counted(len(found), 'point')} of interest in "
            f"{users:,} of {counted(len(traces), 'trace')}"
        )


PAPERS = ("trustcom2015", "most2014")
"""The papers to reproduce: known here, since `promesse_geo.paper` takes seconds to import."""


@layout.command(short_help="Reproduce the paper's Tables I to VI.")
@click.option(
    "--paper",
    type=click.Choice(PAPERS),
    default="trustcom2015",
    show_default=True,
    help="The paper on Promesse, or that on noise against points of interest.",
)
@click.option("--cabspotting", metavar="PATH", help="cabspottingdata.tar.gz, or its folder.")
@click.option("--geolife", metavar="PATH", help="Geolife's archive, or its folder.")
@click.option("--mdc", metavar="PATH", help="The folder or file of the Mobile Data Challenge.")
@click.option(
    "--min-days",
    type=values.Whole(min=1),
    metavar="NUMBER",
    help="Drop users with fewer days of data; by default 21 in real data, none in the synthetic city.",
)
@click.option(
    "--seeds", type=values.Whole(1, MOST_SEEDS), metavar="NUMBER", default=3, show_default=True, help="Number of seeds."
)
@click.option(
    "--jobs",
    type=values.JOBS,
    metavar="NUMBER",
    default=1,
    show_default=True,
    help="Number of processes; -1 uses all processors.",
)
@click.option("--attacks", is_flag=True, help="Add stronger attacks and area coverage, with one seed.")
@click.option("--out", metavar="FOLDER", default="promesse-tables", show_default=True, help="Folder to write to.")
@options.force_option
def reproduce(
    paper: str,
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
    """Reproduce the paper's experiment from raw files, with its numbers next to ours.

    Write Tables I to VI as CSV, and a report as Markdown and as a self-contained HTML page. Without any path, a
    synthetic city replaces the data; the paper has no numbers for it.

    With --paper most2014, write Tables III, VI and VII of Primault et al., Differentially Private Location Privacy in
    Practice, from Cabspotting and Geolife.
    """
    with expected_errors():
        folder = Path(out)
        paths = {"cabspotting": cabspotting, "geolife": geolife, "mdc": mdc}
        options.check_not_input(out, {f"--{name}": path for name, path in paths.items()}, name="--out")
        pg.paper.report.check_report_folder(folder, force=force)
        done = pg.reproduce(paper=paper, **paths, min_days=min_days, seeds=seeds, n_jobs=jobs, attacks=attacks)
        for path in done.save(folder, force=force):
            click.echo(click.format_filename(path))


COMMANDS = (measure, report, pois, reproduce)
