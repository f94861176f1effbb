"""What the commands share: options, reading, writing, and errors in plain words."""

import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta, tzinfo
from pathlib import Path
from typing import Any

import click
import pandas as pd

import promesse_geo as pg
from promesse_geo.io.registry import FORMATS, READING, guess_format, used_options
from promesse_geo.io.writers import check_output
from promesse_geo.mechanisms import Mechanism
from promesse_geo.messages import counted
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_duration, check_zone

_TWINS = re.compile(r"(?:'\w+'|\w+=(?:'[^']*'|True|None|)) \((--[^)]+)\)")
_OWNED = re.compile(r"The '(\w+)' parameter of read_\w+")
_EXPECTED = (ValueError, TypeError, KeyError, OSError, MemoryError)


def remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep a shared option for `read` instead of handing it to the command."""
    if value == "":
        raise click.BadParameter("must not be empty. Leave it out, or say a name.")
    context.ensure_object(dict)[parameter.name] = value


def as_zone(context: click.Context, parameter: click.Parameter, value: str | None) -> tzinfo | None:
    """Turn the name of a zone into one."""
    with wrong_call():
        return None if value is None else check_zone(value, name="tz", owner="prepare")


def as_pause(context: click.Context, parameter: click.Parameter, value: str) -> timedelta:
    """Turn a pause in words into one."""
    number = re.fullmatch(r"\d+(\.\d+)?", value)  # seconds; pandas would take nanoseconds
    with wrong_call():
        name, owner = str(parameter.name), str(context.command.name)
        nanoseconds = check_duration(float(value) if number else value, name=name, owner=owner)
    return pd.Timedelta(nanoseconds, unit="ns")


def input_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the argument INPUT and the options that say how to read it."""
    options = (
        click.argument("source", metavar="INPUT", expose_value=False, callback=remember),
        click.option(
            "--format",
            "format",
            type=click.Choice(list(FORMATS)),
            expose_value=False,
            callback=remember,
            help="Format of INPUT; detected from its content by default.",
        ),
        click.option("--user", metavar="NAME", expose_value=False, callback=remember, help="Column of the user."),
        click.option(
            "--one-trace",
            is_flag=True,
            expose_value=False,
            callback=remember,
            help="INPUT has no user: it is one trace.",
        ),
        click.option(
            "--skip",
            is_flag=True,
            expose_value=False,
            callback=remember,
            help="Leave out files and records that cannot be read, with a warning, instead of stopping.",
        ),
        click.option(
            "--lon", metavar="NAME", expose_value=False, callback=remember, help="Column of the longitude or x."
        ),
        click.option(
            "--lat", metavar="NAME", expose_value=False, callback=remember, help="Column of the latitude or y."
        ),
        click.option("--time", metavar="NAME", expose_value=False, callback=remember, help="Column of the time."),
        click.option(
            "--layer",
            metavar="NAME",
            expose_value=False,
            callback=remember,
            help="Layer of INPUT, where it is a GeoPackage with several.",
        ),
        click.option(
            "--crs", expose_value=False, callback=remember, help="CRS of a CSV's coordinates, such as EPSG:32631."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return click.pass_context(command)


output_argument = click.argument("output", metavar="OUTPUT")
force_option = click.option("--force", is_flag=True, help="Replace what is there.")
keep_users_option = click.option(
    "--keep-users", is_flag=True, help="Keep user names instead of giving new ones. Never publish those of people."
)


def protect(context: click.Context, mechanism: Mechanism, *, output: str, keep_users: bool, force: bool) -> None:
    """Read INPUT, protect it, rename its users unless they are kept, and write OUTPUT."""
    check_target(context, output, force=force)
    traces = read(context)
    records, protected = traces.records, mechanism.protect(traces)
    del traces  # its memory is needed for writing
    save(protected, mechanism, of=records, output=output, keep_users=keep_users, force=force)


def save(
    protected: Traces,
    mechanism: Mechanism,
    *,
    of: int,
    output: str,
    keep_users: bool,
    force: bool,
) -> None:
    """Rename users unless they are kept, and write OUTPUT; refuse to write nothing where INPUT had `of` records."""
    if of and not protected.records:
        raise ValueError(f"Nothing is left to write: no trace of INPUT could be protected. {mechanism.remedy}".strip())
    if not keep_users:
        protected = pg.pseudonymize(protected)
    write(protected, output, mechanism=mechanism, force=force)


def check_target(context: click.Context, output: str, *, force: bool) -> None:
    """Say before long work that OUTPUT cannot be written; never over INPUT, which would be lost."""
    check_inputs_stay(output, {"INPUT": context.ensure_object(dict)["source"]})
    with wrong_call():  # an ending that is not known; files that are there or not are none
        check_output(output, force=force)


def check_inputs_stay(output: str, inputs: Mapping[str, str | None], *, name: str = "OUTPUT") -> None:
    """Say before long work that an output is one of the inputs, which would be lost, or lies in one of them."""
    for role, path in inputs.items():
        if path is None or not (source := Path(path)).exists():
            continue
        if Path(output).exists() and source.samefile(output):
            raise click.UsageError(f"{name} is {role} itself, which would be lost. Name another place.")
        if source.is_dir() and Path(output).resolve().is_relative_to(source.resolve()):
            raise click.UsageError(
                f"{name} lies in the folder {role}, and would be read as part of it the next time. Name another place."
            )


def read(context: click.Context, *, source: str | None = None) -> Traces:
    """Read INPUT, or another source, as the shared options say; the other whole, with one layer, or not at all."""
    options = context.ensure_object(dict)
    _check_all_used(context)
    click.echo("reading …", err=True)
    traces = pg.read_file(
        source or options["source"],
        format=None if source else options["format"],
        layer=None if source else options["layer"],
        errors="skip" if options["skip"] and not source else "raise",
        **as_said(context),
    )
    click.echo(f"read {size(traces)}", err=True)
    return traces


def _check_all_used(context: click.Context) -> None:
    """Refuse options that say how to read what neither INPUT nor PROTECTED, where a command has one, is."""
    options = context.ensure_object(dict)
    said = [name for name in READING if options[name]]
    places = [Path(place) for place in (options["source"], context.params.get("protected")) if place is not None]
    if not said or not all(place.is_file() or place.is_dir() for place in places):
        return
    formats = [options["format"] or guess_format(places[0]), *map(guess_format, places[1:])]
    used = set[str]().union(*map(used_options, places, formats))
    names = " and ".join(f"--{name.replace('_', '-')}" for name in said if name not in used)
    if names:
        raise ValueError(
            f"INPUT (format '{formats[0]}') is read without {names}, for it says this itself. Leave it out."
        )


def as_said(context: click.Context) -> dict[str, Any]:
    """Return the columns and the CRS that the shared options name."""
    options = context.ensure_object(dict)
    if options["one_trace"] and options["user"]:
        raise click.UsageError(
            "--one-trace says that there is no column of the user, --user names one. Say one of them."
        )
    return {
        "user": None if options["one_trace"] else ... if options["user"] is None else options["user"],
        "time": ... if options["time"] is None else options["time"],
        **{name: options[name] for name in ("lon", "lat", "crs")},
    }


def write(traces: Traces, output: str, *, mechanism: Mechanism | None, force: bool) -> None:
    """Write OUTPUT and say what is in it."""
    click.echo("writing …", err=True)
    pg.write(traces, output, mechanism=mechanism, force=force)
    click.echo(f"{click.format_filename(output)}: {size(traces)}")


def size(traces: Traces) -> str:
    """Records and traces in words."""
    return f"{counted(traces.records, 'record')} of {counted(len(traces), 'trace')}"


@contextmanager
def wrong_call() -> Iterator[None]:
    """Turn a refused parameter into a wrong call."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from error


@contextmanager
def in_plain_words() -> Iterator[None]:
    """Turn expected errors and warnings into one line each on stderr."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *rest: click.echo(f"Warning: {_by_options(str(message))}", err=True)
        try:
            yield
        except _EXPECTED as error:
            words = error.args[0] if isinstance(error, KeyError) else str(error)
            if isinstance(error, MemoryError) and not words:  # Python's own has no words
                words = "There is not enough memory."
            words = " ".join((words, *getattr(error, "__notes__", ())))
            click.echo(f"Error: {_by_options(' '.join(words.split()))}", err=True)
            sys.exit(1)


def _by_options(words: str) -> str:
    """The words with options where they name parameters and options: --skip in place of errors='skip' (--skip)."""
    return _OWNED.sub(r"--\1", _TWINS.sub(r"\1", words))
