"""Commands that protect files: smooth, geo-indistinguishability, wait-for-me."""

from collections.abc import Callable
from typing import Any

import click

import promesse_geo as pg
from promesse_geo.cli import layout, options, values
from promesse_geo.cli.data_sets import data_set_options, protect_data_set, writes_data_set
from promesse_geo.cli.errors import expected_errors, usage_errors
from promesse_geo.plot.tables import groups_in_words


@layout.command(short_help="Apply Promesse: points at constant distance and time.")
@options.input_options
@options.output_argument
@click.option(
    "--epsilon",
    type=values.NUMBER,
    metavar="METRES",
    required=True,
    help="Distance between published points; 200 in the paper.",
)
@click.option(
    "--variant",
    type=click.Choice(["polyline", "pseudocode"]),
    default="polyline",
    show_default=True,
    help="Points on the path, or Algorithm 1 to the letter.",
)
@click.option(
    "--min-points",
    type=values.Whole(min=1),
    metavar="NUMBER",
    default=1,
    show_default=True,
    help="Drop traces with fewer protected points.",
)
@click.option(
    "--ends",
    type=values.NUMBER,
    metavar="METRES",
    default=0,
    show_default=True,
    help="Also cut a random length of up to METRES from each end; we recommend 400 for traces of people.",
)
@click.option("--max-interval", help="Drop traces with more time between points, such as 5min.", metavar="DURATION")
@data_set_options
@options.keep_users_option
@options.force_option
def smooth(
    context: click.Context,
    output: str,
    epsilon: float,
    variant: str,
    min_points: int,
    ends: float,
    max_interval: str | None,
    keep_users: bool,
    force: bool,
) -> None:
    """Apply Promesse to INPUT: points at constant distance and time from each other.

    Stops are hidden, the path is kept. The ends of traces still point at homes: cut them with --ends, and remove zones
    around homes with zones before. Users are renamed unless you pass --keep-users.

    Prepare INPUT first unless its traces are short: smoothing does not stop at gaps. Traces too short for EPSILON are
    dropped. If all are, nothing is written.

    If INPUT is a folder of Parquet and OUTPUT has no extension, OUTPUT is a folder, too, and the work is divided to fit
    into --memory, which is a plan and not a limit.
    """
    with usage_errors():
        mechanism = pg.Promesse(epsilon, variant=variant, min_points=min_points, ends=ends, max_interval=max_interval)
    with expected_errors():
        protect = protect_data_set if writes_data_set(context, output) else options.protect
        protect(context, mechanism, output=output, keep_users=keep_users, force=force)


@layout.command(short_help="Add planar Laplace noise to each record.")
@options.input_options
@options.output_argument
@click.option("--epsilon", type=values.NUMBER, metavar="VALUE", help="Level in 1/metre, such as 0.0069 for ln(4)/200.")
@click.option(
    "--level",
    type=values.NUMBER,
    metavar="VALUE",
    help="Instead of --epsilon: 4 with --radius 200 is an epsilon of ln(4)/200.",
)
@click.option("--radius", type=values.NUMBER, metavar="METRES", help="Radius of --level; 200 by default.")
@click.option(
    "--grid", type=values.NUMBER, metavar="METRES", help="Round to a grid of cells of this size after the noise."
)
@click.option(
    "--seed",
    type=values.SEED,
    metavar="SEED",
    help="Seed of the noise, for experiments only: anyone who guesses it can remove the noise.",
)
@data_set_options
@options.keep_users_option
@options.force_option
def geo_indistinguishability(
    context: click.Context,
    output: str,
    epsilon: float | None,
    level: float | None,
    radius: float | None,
    grid: float | None,
    seed: str | None,
    keep_users: bool,
    force: bool,
) -> None:
    """Add planar Laplace noise to each record of INPUT independently (geo-indistinguishability).

    Times are kept. The guarantee holds for a single record: during long stays the noise averages out.
    """
    if (epsilon is None) == (level is None) or (level is None and radius is not None):
        raise click.UsageError("Specify either --epsilon, or --level and its --radius.")
    with usage_errors():
        if epsilon is not None:
            mechanism = pg.GeoIndistinguishability(epsilon, grid=grid, seed=seed)
        elif level is not None:
            mechanism = pg.GeoIndistinguishability.from_level(
                level, radius=200 if radius is None else radius, grid=grid, seed=seed
            )
    with expected_errors():
        protect = protect_data_set if writes_data_set(context, output) else options.protect
        protect(context, mechanism, output=output, keep_users=keep_users, force=force)


_WAIT_FOR_ME: dict[str, tuple[Any, str | None, str]] = {
    "k": (values.Whole(min=2), "NUMBER", "Minimum number of traces of a group."),
    "delta": (values.NUMBER, "METRES", "Maximum distance within a group."),
    "max_radius": (values.NUMBER, "METRES", "Initial group radius; increased until few enough traces are dropped."),
    "max_trash": (values.NUMBER, "SHARE", "Maximum share of traces to drop, from 0 to 1."),
    "cost_cap": (values.Whole(min=1), "NUMBER", "Cost of a pair of distant points, in multiples of delta."),
    "radius_test": (click.Choice(["members", "v1.1"]), None, "What is compared with the radius."),
    "chunk": (bool, None, "Group 20·k traces at a time, for data beyond memory."),
    "program": (
        click.Choice(["v1.1"]),
        None,
        "Behave as the program of 2010, with traces in the order of their names.",
    ),
    "seed": (values.SEED, "SEED", "Seed of the pivots, for experiments only: never publish with one."),
}


def _wait_for_me_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each parameter of Wait for Me to a command."""
    added = []
    for name, (kind, metavar, text) in _WAIT_FOR_ME.items():
        option, default = f"--{name.replace('_', '-')}", getattr(pg.WaitForMe(), name)
        added.append(options.shared_option(option, text, kind=kind, default=default, metavar=metavar))
    return options.with_options(command, added)


@layout.command(short_help="Move traces together in groups (Wait for Me).")
@options.input_options
@options.output_argument
@_wait_for_me_options
@options.keep_users_option
@options.force_option
def wait_for_me(context: click.Context, output: str, keep_users: bool, force: bool) -> None:
    """Apply Wait for Me to INPUT: groups of k traces within delta metres of each other at every instant.

    One trace of each group, the pivot, is published unchanged, with all its stops.
    """
    with usage_errors():
        mechanism = pg.WaitForMe(**{name: context.obj[name] for name in _WAIT_FOR_ME})
    with expected_errors():
        options.check_target(context, output, force=force)
        traces = options.read(context)
        protected, report = mechanism.protect_with_report(traces)
        click.echo(groups_in_words(report), err=True)
        options.save(protected, mechanism, of=traces.records, output=output, keep_users=keep_users, force=force)


COMMANDS = (smooth, geo_indistinguishability, wait_for_me)
