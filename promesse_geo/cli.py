"""promesse-geo …: the accessor's verbs for files."""

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta, tzinfo
from pathlib import Path
from typing import Any

import click
import pandas as pd

import promesse_geo as pg
from promesse_geo import check
from promesse_geo.datasets.guess import FORMATS
from promesse_geo.mechanisms import Mechanism
from promesse_geo.traces import Traces
from promesse_geo.view.tables import description
from promesse_geo.write import check_output

_EXPECTED = (ValueError, TypeError, KeyError, OSError, MemoryError)

_EPILOG = """
\b
Exit status: 0 done; 1 could not be done, the reason is on stderr; 2 the call was wrong.

\b
To compare files later, prepare first and keep the prepared users while protecting:
  promesse-geo prepare raw.tar.gz prepared.parquet --tz America/Los_Angeles
  promesse-geo smooth prepared.parquet safe.parquet --epsilon 200 --keep-users
"""


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep a shared option for `_read` instead of handing it to the command."""
    context.ensure_object(dict)[parameter.name] = value


def _zone(context: click.Context, parameter: click.Parameter, value: str | None) -> tzinfo | None:
    with _wrong_call():
        return None if value is None else check.zone(value, name="tz", owner="prepare")


def _gap(context: click.Context, parameter: click.Parameter, value: str) -> timedelta:
    number = re.fullmatch(r"\d+(\.\d+)?", value)  # seconds; pandas would take nanoseconds
    with _wrong_call():
        nanoseconds = check.duration(float(value) if number else value, name="gap", owner="prepare")
    return pd.Timedelta(nanoseconds, unit="ns")


def _reads_input(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the argument INPUT and the options that say how to read it."""
    options = (
        click.argument("source", metavar="INPUT", expose_value=False, callback=_remember),
        click.option(
            "--format",
            "format",
            type=click.Choice(FORMATS),
            expose_value=False,
            callback=_remember,
            help="Format of INPUT; told by its content.",
        ),
        click.option("--user", metavar="NAME", expose_value=False, callback=_remember, help="Column of the user."),
        click.option(
            "--one-trace",
            is_flag=True,
            expose_value=False,
            callback=_remember,
            help="INPUT has no user: it is one trace.",
        ),
        click.option("--time", metavar="NAME", expose_value=False, callback=_remember, help="Column of the time."),
        click.option(
            "--crs", expose_value=False, callback=_remember, help="CRS of a CSV's coordinates, such as EPSG:32631."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return click.pass_context(command)


_writes_output = click.argument("output", metavar="OUTPUT")
_force = click.option("--force", is_flag=True, help="Replace what is there.")
_keep_users = click.option(
    "--keep-users", is_flag=True, help="Keep user names instead of giving new ones. Never publish those of people."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=_EPILOG)
@click.version_option(pg.__version__, prog_name="promesse-geo")
def main() -> None:
    """Protect GPS traces before they are published.

    INPUT is cabspottingdata.tar.gz or its folder, GeoParquet, GeoPackage, GeoJSON or CSV, told by its content.
    OUTPUT is GeoParquet, GeoPackage, CSV or GeoJSON, told by its ending: .parquet, .gpkg, .csv or .geojson.
    """


@main.command(short_help="Protect with Promesse: constant distance and time.")
@_reads_input
@_writes_output
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
@_keep_users
@_force
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
    """
    with _wrong_call():
        mechanism = pg.Promesse(epsilon, variant=variant, min_points=min_points)
    with _in_plain_words():
        _protect(context, mechanism, output=output, keep_users=keep_users, force=force)


@main.command(short_help="Prepare as the paper does: days, parts.")
@_reads_input
@_writes_output
@click.option(
    "--tz",
    callback=_zone,
    help="Zone in which days begin, such as Europe/Paris; by default that of the times.",
)
@click.option(
    "--days", type=click.IntRange(min=1), default=20, show_default=True, help="Days of data to keep of each user."
)
@click.option("--min-days", type=click.IntRange(min=1), help="Leave out users with fewer days of data.")
@click.option(
    "--gap",
    default="4h",
    show_default=True,
    callback=_gap,
    help="Shortest pause that cuts a trace, such as 90min; a number alone is seconds.",
)
@_keep_users
@_force
def prepare(
    context: click.Context,
    output: str,
    tz: tzinfo | None,
    days: int,
    min_days: int | None,
    gap: timedelta,
    keep_users: bool,
    force: bool,
) -> None:
    """Prepare INPUT as the paper does: no empty days, the first days, parts between pauses.

    Each part gets a virtual user of its own. This protects nothing: places remain as they are.
    """
    with _in_plain_words():
        _check_output(output, force=force)
        parts = pg.prepare(_read(context), tz=tz, days=days, min_days=min_days, gap=gap, keep_user=keep_users)
        _write(parts, output, mechanism=None, force=force)


@main.command(short_help="Describe by the figures of the paper's Table I.")
@_reads_input
def info(context: click.Context) -> None:
    """Describe INPUT by the figures of the paper's Table I."""
    with _in_plain_words():
        click.echo(description(_read(context)))


@main.command()
@click.option("--out", default="promesse-demo", show_default=True, help="Folder to write to.")
@click.option("--epsilon", type=float, default=200.0, show_default=True, help="Metres between published points.")
@_force
def demo(out: str, epsilon: float, force: bool) -> None:
    """Make a city, smooth it, and show what happened to it."""
    with _wrong_call():
        pg.Promesse(epsilon)
    with _in_plain_words():
        click.echo(pg.run_demo(Path(out), epsilon=epsilon, force=force))


def _protect(context: click.Context, mechanism: Mechanism, *, output: str, keep_users: bool, force: bool) -> None:
    _check_output(output, force=force)
    protected = mechanism.protect(_read(context))
    if not keep_users:
        protected = pg.pseudonymize(protected)
    _write(protected, output, mechanism=mechanism, force=force)


def _check_output(output: str, *, force: bool) -> None:
    with _wrong_call():  # an ending that is not known; files that are there or not are none
        check_output(output, force=force)


def _read(context: click.Context) -> Traces:
    options = context.ensure_object(dict)
    user = None if options["one_trace"] else options["user"] or ...
    click.echo("reading …", err=True)
    traces = pg.read_file(
        options["source"], format=options["format"], user=user, time=options["time"] or ..., crs=options["crs"]
    )
    click.echo(f"read {_size(traces)}", err=True)
    return traces


def _write(traces: Traces, output: str, *, mechanism: Mechanism | None, force: bool) -> None:
    click.echo("writing …", err=True)
    pg.write(traces, output, mechanism=mechanism, force=force)
    click.echo(f"{output}: {_size(traces)}")


def _size(traces: Traces) -> str:
    return f"{check.counted(traces.records, 'record')} of {check.counted(len(traces), 'trace')}"


@contextmanager
def _wrong_call() -> Iterator[None]:
    """Turn a refused parameter into a wrong call."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from error


@contextmanager
def _in_plain_words() -> Iterator[None]:
    """Turn expected errors and warnings into one line each on stderr."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *rest: click.echo(f"Warning: {message}", err=True)
        try:
            yield
        except _EXPECTED as error:
            words = error.args[0] if isinstance(error, KeyError) else str(error)
            click.echo(f"Error: {' '.join(words.split())}", err=True)
            sys.exit(1)


if __name__ == "__main__":
    main()
