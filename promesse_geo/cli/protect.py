"""promesse-geo smooth, geo-indistinguishability, wait-for-me: the mechanisms for files."""

from collections.abc import Callable
from typing import Any

import click

import promesse_geo as pg
from promesse_geo.cli.options import (
    check_target,
    force_option,
    in_plain_words,
    input_options,
    keep_users_option,
    output_argument,
    protect,
    read,
    remember,
    save,
    wrong_call,
)


@click.command(short_help="Protect with Promesse: constant distance and time.")
@input_options
@output_argument
@click.option("--epsilon", type=float, required=True, help="Metres between published points; the paper takes 200.")
@click.option(
    "--variant",
    type=click.Choice(["polyline", "pseudocode"]),
    default="polyline",
    show_default=True,
    help="Points on the path, or as Algorithm 1 says to the letter.",
)
@click.option(
    "--min-points", type=click.IntRange(min=1), default=1, show_default=True, help="Drop traces with fewer points left."
)
@keep_users_option
@force_option
def smooth(
    context: click.Context,
    output: str,
    epsilon: float,
    variant: str,
    min_points: int,
    keep_users: bool,
    force: bool,
) -> None:
    """Protect INPUT with Promesse: a constant distance and time between points.

    Stops disappear, the path stays. Users get new names unless --keep-users is given.

    Prepare INPUT first unless its traces are short: each is smoothed as a whole, straight on through nights without
    records. Traces too short for EPSILON are left out; if all are, nothing is written.
    """
    with wrong_call():
        mechanism = pg.Promesse(epsilon, variant=variant, min_points=min_points)
    with in_plain_words():
        protect(context, mechanism, output=output, keep_users=keep_users, force=force)


@click.command(short_help="Protect with planar Laplace noise.")
@input_options
@output_argument
@click.option("--epsilon", type=float, help="Level in 1/metre, such as 0.0069 for ln(4)/200.")
@click.option("--level", type=float, help="In place of --epsilon: factor within --radius, such as 4.")
@click.option("--radius", type=float, help="Metres, for --level; 200 by default.")
@click.option("--grid", type=float, help="Round to a grid of so many metres, after the noise.")
@click.option("--seed", help="Repeatable noise, for experiments only: who guesses the seed takes the noise off again.")
@keep_users_option
@force_option
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
    """Protect INPUT with geo-indistinguishability: every record moves by noise of its own.

    Times stay. The guarantee is for one record: where somebody stays long, the noise averages out.
    """
    if (epsilon is None) == (level is None) or (level is None and radius is not None):
        raise click.UsageError("Say either --epsilon, or --level and its --radius.")
    with wrong_call():
        if epsilon is not None:
            mechanism = pg.GeoIndistinguishability(epsilon, grid=grid, seed=seed)
        elif level is not None:
            mechanism = pg.GeoIndistinguishability.from_level(
                level, radius=200 if radius is None else radius, grid=grid, seed=seed
            )
    with in_plain_words():
        protect(context, mechanism, output=output, keep_users=keep_users, force=force)


def _wait_for_me_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that `_wait_for_me_mechanism` reads."""
    defaults = pg.WaitForMe()
    kept: dict[str, Any] = {"expose_value": False, "callback": remember}
    shown: dict[str, Any] = {**kept, "show_default": True}
    tests = click.Choice(["members", "v1.1"])
    options = (
        click.option("--k", type=int, default=defaults.k, help="Traces of a group, at least.", **shown),
        click.option("--delta", type=float, default=defaults.delta, help="Metres within a group, at most.", **shown),
        click.option(
            "--max-radius",
            type=float,
            default=defaults.max_radius,
            help="Metres that a group may lie apart in the data; grows until the trash is small enough.",
            **shown,
        ),
        click.option(
            "--max-trash", type=float, default=defaults.max_trash, help="Share of traces that may be left out.", **shown
        ),
        click.option(
            "--cost-cap", type=int, default=defaults.cost_cap, help="Cost of a far pair, in units of delta.", **shown
        ),
        click.option(
            "--radius-test", type=tests, default="members", help="What is tested against the radius.", **shown
        ),
        click.option("--chunk", is_flag=True, help="Group 20·k traces at a time, for data beyond memory.", **kept),
        click.option(
            "--program",
            type=click.Choice(["v1.1"]),
            help="Do as the program of 2010, with traces in the order of their names.",
            **kept,
        ),
        click.option("--seed", help="Repeatable pivots, for experiments: never publish with one.", **kept),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _wait_for_me_mechanism(context: click.Context) -> pg.WaitForMe:
    """Return Wait for Me as its options say."""
    options = context.ensure_object(dict)
    rest = ("max_radius", "max_trash", "cost_cap", "radius_test", "chunk", "program", "seed")
    with wrong_call():
        return pg.WaitForMe(options["k"], options["delta"], **{name: options[name] for name in rest})


def _figure(value: float) -> str:
    """One decimal, or three digits of what is too small for one."""
    return f"{value:.3g}" if 0 < value < 1 else f"{value:,.1f}"


def _with_unit(name: str) -> str:
    """A name of the report's summary, with its unit if it has one."""
    units = {"final_radius": "m", "space_translation": "m", "time_translation": "s", "pseudo_diameter": "m"}
    return next((f"{name} ({unit})" for start, unit in units.items() if name.startswith(start)), name)


@click.command(short_help="Protect in groups of traces that go together.")
@input_options
@output_argument
@_wait_for_me_options
@keep_users_option
@force_option
def wait_for_me(context: click.Context, output: str, keep_users: bool, force: bool) -> None:
    """Protect INPUT with Wait for Me: groups of k traces within delta metres of each other at every instant.

    One trace of each group, the pivot, is published as it was, with all places where it stopped.
    """
    mechanism = _wait_for_me_mechanism(context)
    with in_plain_words():
        check_target(context, output, force=force)
        traces = read(context)
        protected, report = mechanism.protect_with_report(traces)
        click.echo(report.summary.rename(_with_unit).to_string(float_format=_figure), err=True)
        if report.clusters:
            click.echo("The pivot of each cluster is published as it was, with all places where it stopped.", err=True)
        save(protected, mechanism, of=traces.records, output=output, keep_users=keep_users, force=force)


COMMANDS = (smooth, geo_indistinguishability, wait_for_me)
