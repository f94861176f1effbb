"""The command tune."""

import inspect
import math
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import click

import promesse_geo as pg
from promesse_geo import metrics
from promesse_geo.cli import layout, options, values
from promesse_geo.cli.errors import expected_errors, usage_errors
from promesse_geo.cli.publish import MECHANISMS, make_mechanism, option_name
from promesse_geo.evaluation.tuning import check_tuning
from promesse_geo.io.atomic import atomic_path, check_target, write_text
from promesse_geo.mechanisms import Mechanism
from promesse_geo.mechanisms.recommendations import KINDS, Kind
from promesse_geo.validation import LARGEST

METRICS: dict[str, type[pg.Metric]] = {
    option_name(kind): kind
    for kind in vars(metrics).values()
    if inspect.isclass(kind) and issubclass(kind, pg.Metric) and kind is not pg.Metric
}
"""Metrics by their names on the command line."""

_FIGURES = (".png", ".svg", ".pdf")
_Limits = tuple[tuple[str, float], ...]


def _goal_option(name: str, help: str) -> Callable[..., Any]:
    """Return an option of a metric and a limit, which may be repeated."""
    kinds: Any = (click.Choice(list(METRICS)), values.NUMBER)
    return click.option(name, type=kinds, multiple=True, metavar="METRIC NUMBER", help=help)


@layout.command(
    short_help="Find the parameter that meets goals of privacy at the best utility.",
    epilog=f"METRIC is one of {', '.join(METRICS)}.",
)
@options.input_options
@click.option("--mechanism", type=click.Choice(list(MECHANISMS)), help="The protection; by default promesse.")
@click.option("--recommended", type=click.Choice(KINDS), help="What we recommend, instead of --mechanism.")
@click.option(
    "--epsilon", type=values.NUMBER, metavar="VALUE", help="Parameter of the mechanism, if another one is tuned."
)
@click.option("--parameter", multiple=True, metavar="NAME=VALUE", help="A parameter to keep; may be repeated.")
@click.option("--tune", "tuned", default="epsilon", show_default=True, metavar="NAME", help="The parameter to tune.")
@click.option("--from", "low", type=values.NUMBER, metavar="VALUE", required=True, help="Smallest value to try.")
@click.option("--to", "high", type=values.NUMBER, metavar="VALUE", required=True, help="Largest value to try.")
@_goal_option("--at-most", "Goal: the metric is at most this, as in --at-most poi-retrieval 1; may be repeated.")
@_goal_option("--at-least", "Goal: the metric is at least this; may be repeated.")
@click.option(
    "--objective",
    type=click.Choice(list(METRICS)),
    metavar="METRIC",
    default="range-query-distortion",
    show_default=True,
    help="What shall be small among the values that meet all goals.",
)
@click.option("--maximize", is_flag=True, help="The objective shall be large.")
@click.option(
    "--values",
    type=values.Whole(2, 100_000),
    metavar="NUMBER",
    default=30,
    show_default=True,
    help="Number of values to try.",
)
@click.option("--per-user", is_flag=True, help="Tune for each user alone.")
@click.option("--seed", type=values.SEED, metavar="SEED", help="Seed of what is random, for repeatable results.")
@click.option("--out", metavar="FILE", help="Write the table of all values to FILE, a .csv.")
@click.option("--figure", metavar="FILE", help="Draw values of the metrics to FILE: .png, .svg or .pdf.")
@options.force_option
def tune(
    context: click.Context,
    mechanism: str | None,
    recommended: Kind | None,
    epsilon: float | None,
    parameter: tuple[str, ...],
    tuned: str,
    low: float,
    high: float,
    at_most: _Limits,
    at_least: _Limits,
    objective: str,
    maximize: bool,
    values: int,
    per_user: bool,
    seed: str | None,
    out: str | None,
    figure: str | None,
    force: bool,
) -> None:
    """Find the value of a parameter that meets goals, at the best value of an objective.

    INPUT is what would be protected: prepare it first, with --keep-users. The table of --per-user names users: do not
    publish it.
    """
    with usage_errors():
        if not 0 < low < high <= LARGEST:
            raise click.UsageError(f"--from must be above zero and less than --to, which is at most {LARGEST:,.0f}.")
        chosen = _mechanism(mechanism, recommended, epsilon, parameter, tuned, low)
        kind = next((name for name, each in MECHANISMS.items() if isinstance(chosen, each)), "promesse")
        goals = [(_metric(name, kind), "<=", limit) for name, limit in at_most]
        goals += [(_metric(name, kind), ">=", limit) for name, limit in at_least]
        if not goals or not all(math.isfinite(limit) for _, _, limit in goals):
            raise click.UsageError("Specify a goal, such as --at-most poi-retrieval 1.")
        search: dict[str, Any] = {"parameter": tuned, "bounds": (low, high), "goals": goals}
        search["objective"] = _metric(objective, kind)
        check_tuning(chosen, **search)
        outputs = _check_outputs(context, {"--out": out, "--figure": figure})
    with expected_errors():
        for path in outputs:
            check_target(path, force=force)
        traces = options.read(context)
        found = pg.tune(traces, chosen, maximize=maximize, per_user=per_user, values=values, seed=seed, **search)
        click.echo(found)
        if not per_user:
            click.echo(found.table.to_string(index=False, float_format=lambda value: f"{value:.4g}"))
        if out is not None:
            text = found.table.to_csv(index=False, lineterminator="\n")
            write_text(Path(out), text, force=force, private=per_user)
        if figure is not None:
            with atomic_path(Path(figure), force=force, private=False) as temporary:
                pg.plot.tuning(found).figure.savefig(temporary, dpi=150)  # type: ignore[union-attr]


def _mechanism(
    name: str | None,
    recommended: Kind | None,
    epsilon: float | None,
    parameters: tuple[str, ...],
    tuned: str,
    low: float,
) -> Mechanism:
    """Return the mechanism to tune; the tuned parameter need not be given."""
    if recommended is not None:
        if name is not None or epsilon is not None or parameters:
            raise ValueError("--recommended replaces --mechanism, --epsilon and --parameter. Specify one of them.")
        return pg.recommended(recommended)
    chosen = name or "promesse"
    names = [field.name for field in fields(MECHANISMS[chosen]) if field.init]
    if tuned not in names:
        raise ValueError(f"{chosen} has no parameter {tuned!r} to tune. Choose one with --tune: {', '.join(names)}.")
    if tuned == "epsilon" and epsilon is not None:
        raise ValueError("--epsilon is tuned, from --from to --to. Omit it, or name another parameter with --tune.")
    required = {field.name for field in fields(MECHANISMS[chosen]) if field.default is MISSING and field.init}
    given = {tuned: low} if tuned in required else {"epsilon": epsilon}
    return make_mechanism(chosen, given, parameters)


def _metric(name: str, kind: str) -> pg.Metric:
    """Return the metric of a name; an attacker who knows the kind of mechanism knows this one."""
    required = {field.name for field in fields(METRICS[name]) if field.default is MISSING and field.init}
    return METRICS[name](**({"kind": kind} if "kind" in required else {}))


def _check_outputs(context: click.Context, paths: dict[str, str | None]) -> list[Path]:
    """Return the files to write; raise if one is INPUT or ends otherwise."""
    found = []
    for name, path in paths.items():
        if path is None:
            continue
        endings = (".csv",) if name == "--out" else _FIGURES
        if Path(path).suffix.lower() not in endings:
            raise ValueError(f"{name} must end with {', '.join(endings)}. Got {path!r} instead.")
        options.check_not_input(path, {"INPUT": context.obj["source"]}, name=name)
        found.append(Path(path))
    return found


COMMANDS = (tune,)
