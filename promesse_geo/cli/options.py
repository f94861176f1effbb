"""Options, reading and writing that the commands share."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import click
import geopandas as gpd
import pandas as pd
import pyogrio
from click.core import ParameterSource

import promesse_geo as pg
from promesse_geo.cli import layout, values
from promesse_geo.cli.errors import usage_errors
from promesse_geo.io.registry import FORMATS, READING, guess_format, used_options
from promesse_geo.io.sources import BY_PLACE, user_of_file
from promesse_geo.io.table_columns import IfFits
from promesse_geo.io.text_layout import check_text_options
from promesse_geo.io.writers import check_output
from promesse_geo.mechanisms import Mechanism
from promesse_geo.messages import counted, listed
from promesse_geo.traces.crs import read_crs
from promesse_geo.traces.missing_columns import missing_columns
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_duration

_OF_TEXT = ("columns", "separator", "decimal", "encoding", "time_format")
_OF_FILE = (*_OF_TEXT, "tz", "layer")
_OF_TRACKS = ("track", "device")  # values of --user for tracks and phones, which have no columns
_NO_NAMES: dict[str, Any] = {"time": ..., "segment": ..., "lon": None, "lat": None}


def remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Store a shared option for `read` instead of passing it to the command."""
    if value == "":
        raise click.BadParameter("must not be empty. Omit it, or specify a name.")
    context.ensure_object(dict)[parameter.name] = value


def as_duration(context: click.Context, parameter: click.Parameter, value: str) -> timedelta:
    """Convert a duration such as 15min; a number alone is seconds."""
    with usage_errors():
        nanoseconds = as_nanoseconds(value, name=str(parameter.name), owner=str(context.command.name))
    return pd.Timedelta(nanoseconds, unit="ns")


def as_nanoseconds(value: str, *, name: str, owner: str) -> int:
    """Convert a duration to nanoseconds; pandas would take a number alone for them."""
    number = re.fullmatch(r"[0-9]+(\.[0-9]+)?", value)
    return check_duration(float(value) if number else value, name=name, owner=owner)


def shared_option(
    name: str,
    help: str,
    *,
    kind: Any = None,
    default: Any = None,
    metavar: str | None = None,
    cls: type[click.Option] = click.Option,
) -> Callable[..., Any]:
    """Return an option that `remember` stores for later instead of a parameter of the command; bools are flags."""
    typed: dict[str, Any] = {"is_flag": True, "default": False} if kind is bool else {"type": kind, "default": default}
    typed |= {"show_default": bool(default), "metavar": metavar, "cls": cls}
    return click.option(name, help=help, expose_value=False, callback=remember, **typed)


_reading_option = partial(shared_option, cls=layout.ReadingOption)


_INPUT = (
    click.argument("source", metavar="INPUT", expose_value=False, callback=remember),
    _reading_option(
        "--format",
        f"Format of INPUT; detected by default: {', '.join(FORMATS)}.",
        kind=click.Choice(list(FORMATS)),
        metavar="NAME",
    ),
    _reading_option(
        "--user",
        "Column of the user; or file, folder or folder-2 (two levels up), which name the user of each file.",
        metavar="NAME",
    ),
    _reading_option("--one-trace", "INPUT has no user column: all records are one trace.", kind=bool),
    _reading_option("--skip", "Skip files and records that cannot be read, with a warning.", kind=bool),
    _reading_option("--lon", "Column of the longitude or x.", metavar="NAME"),
    _reading_option("--lat", "Column of the latitude or y.", metavar="NAME"),
    _reading_option("--time", "Column of the time.", metavar="NAME"),
    _reading_option("--layer", "Layer of INPUT, if it is a GeoPackage with several layers.", metavar="NAME"),
    _reading_option("--segment", "Column whose value changes where nothing was recorded in between.", metavar="NAME"),
    _reading_option(
        "--columns", "Columns of text without a header, such as user,time,lon,lat.", kind=values.TEXT, metavar="NAMES"
    ),
    _reading_option(
        "--separator", "What separates the values of text, such as ; or tab.", kind=values.TEXT, metavar="SIGN"
    ),
    _reading_option("--decimal", "What stands before decimals in text.", kind=click.Choice([".", ","])),
    _reading_option("--encoding", "Encoding of text, such as cp1252.", kind=values.TEXT, metavar="NAME"),
    _reading_option(
        "--time-format",
        "How times in text are written, such as '%d.%m.%Y %H:%M:%S'.",
        kind=values.TEXT,
        metavar="FORMAT",
    ),
    _reading_option(
        "--tz",
        "Time zone of times without one, and of the days, such as Europe/Paris; by default that of the times.",
        kind=values.ZONE,
        metavar="ZONE",
    ),
    _reading_option("--crs", "CRS of the coordinates of a CSV, such as EPSG:32631.", kind=values.CRS, metavar="CODE"),
)


def with_options(function: Callable[..., Any], options: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """Add options to a command, in this order."""
    for option in reversed(options):
        function = option(function)
    return function


def input_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument INPUT and the options of reading it to a command, which then takes the context."""
    return click.pass_context(with_options(function, _INPUT))


output_argument = click.argument("output", metavar="OUTPUT")
force_option = click.option("--force", is_flag=True, help="Overwrite existing files.")
keep_users_option = click.option(
    "--keep-users",
    is_flag=True,
    help="Keep user names instead of renaming them; prepare names the parts of a user NAME-00000 and so on. Never "
    "publish names of people.",
)


def protect(context: click.Context, mechanism: Mechanism, *, output: str, keep_users: bool, force: bool) -> None:
    """Read INPUT, protect it, rename its users unless they are kept, and write OUTPUT."""
    check_target(context, output, force=force)
    traces = read(context)
    records, protected = traces.records, mechanism.protect(traces)
    del traces  # its memory is needed for writing
    save(protected, mechanism, of=records, output=output, keep_users=keep_users, force=force)


def save(protected: Traces, mechanism: Mechanism, *, of: int, output: str, keep_users: bool, force: bool) -> None:
    """Rename users unless they are kept, and write OUTPUT; raise if INPUT had `of` records and none is left."""
    if of and not protected.records:
        remedy = f" {mechanism.remedy}" if mechanism.remedy else ""
        raise ValueError(f"Nothing is left to write: no trace of INPUT could be protected.{remedy}")
    if not keep_users and protected.names.user is not None:  # a single trace has no user to rename
        protected = pg.pseudonymize(protected)
    write(protected, output, force=force)


def check_target(context: click.Context, output: str, *, force: bool) -> None:
    """Raise before long work if OUTPUT cannot be written, or is INPUT."""
    check_not_input(output, {"INPUT": context.ensure_object(dict)["source"]})
    with usage_errors():  # an unknown extension; existing files and missing folders are no usage errors
        check_output(output, force=force)


def check_not_input(output: str, inputs: Mapping[str, str | None], *, name: str = "OUTPUT") -> None:
    """Raise before long work if an output is one of the inputs or lies in the folder of one."""
    for role, path in inputs.items():
        if path is None or not (source := Path(path)).exists():
            continue
        if Path(output).exists() and source.samefile(output):
            raise click.UsageError(f"{name} is {role} itself, which would be lost. Specify another path.")
        if source.is_dir() and Path(output).resolve().is_relative_to(source.resolve()):
            raise click.UsageError(
                f"{name} lies in the folder {role} and would be read as part of it next time. Specify another path."
            )


def read(context: click.Context) -> Traces:
    """Read INPUT with the shared options."""
    _used_options(context)
    return _read_reported(_input_options(context) | column_options(context))


def read_both(context: click.Context, protected: str) -> tuple[Traces, Traces]:
    """Read INPUT and PROTECTED; names of columns and the CRS count for the files that have or need them.

    Raises
    ------
    KeyError
        If neither has a column; the message lists the columns of both.
    ValueError
        If neither needs the CRS.
    """
    both = _options_of_both(context, protected)
    if (crs := both[0]["crs"]) is None:
        return _read_each(both)
    read_crs(crs)  # raises if it is none
    fitting = IfFits(crs)
    traces = _read_each([{**options, "crs": fitting} for options in both])
    if not fitting.is_used:
        raise ValueError("'crs' (--crs) is the CRS of neither INPUT nor PROTECTED, which need none. Omit it.")
    return traces


def _options_of_both(context: click.Context, protected: str) -> list[dict[str, Any]]:
    """Return the options by which INPUT and PROTECTED are read.

    Options of text, of layers and of the zone count for PROTECTED if they do not apply to INPUT.
    """
    used = _used_options(context)
    columns, of_input = column_options(context), _input_options(context)
    of_protected = {name: of_input[name] for name in _OF_FILE if name in used[1] and name not in used[0]}
    both = [of_input | columns, {"source": protected, **of_protected, **columns}]
    has_columns = ["time" in options for options in used]
    is_column = columns["user"] not in (*BY_PLACE, *_OF_TRACKS)
    if not (is_column or columns["user"] in BY_PLACE or has_columns[0]):
        both[1]["user"] = ...
    if any(has_columns):  # which the names are for
        without = _NO_NAMES | ({"user": ...} if is_column else {})
        for options, has_any in zip(both, has_columns, strict=True):
            options.update({} if has_any else without)
    for options, names in zip(both, used, strict=True):
        unused = {name: None for name in (*_OF_TEXT, "layer") if name in options} | _NO_NAMES
        options.update({name: default for name, default in unused.items() if name not in names})
    return both


def _read_each(both: Sequence[Mapping[str, Any]]) -> tuple[Traces, Traces]:
    """Read two inputs; a name of a column counts for the files that have such a column."""
    readers = (_read_reported, _read_protected)
    tried = [_read_or_find_missing(reader, options) for reader, options in zip(readers, both, strict=True)]
    errors = [result for result in tried if isinstance(result, KeyError)]
    names = {role: IfFits(name) for error in errors for role, name in (missing_columns(error) or {}).items()}
    results = [
        _read_fitting(reader, {**options, **names}, result) if isinstance(result, KeyError) else result
        for reader, options, result in zip(readers, both, tried, strict=True)
    ]
    for role, name in names.items():
        asked = [result for options, result in zip(both, tried, strict=True) if options[role] == name]
        if not name.is_used and all(isinstance(result, KeyError) for result in asked):
            raise KeyError(" ".join(str(error.args[0]) for error in errors))
    before, after = map(_raised, results)
    return before, after


def _raised(result: Traces | KeyError) -> Traces:
    if isinstance(result, KeyError):
        raise result
    return result


def _read_or_find_missing(reader: Callable[..., Traces], options: Mapping[str, Any]) -> Traces | KeyError:
    """Read, or return the error about names of columns that do not exist."""
    try:
        return reader(options)
    except KeyError as error:
        if not missing_columns(error):
            raise
        return error


def _read_fitting(reader: Callable[..., Traces], options: Mapping[str, Any], error: KeyError) -> Traces | KeyError:
    """Read with names that count where they fit; if there are no other columns, return the error about the names."""
    try:
        return reader(options)
    except (KeyError, ValueError) as other:
        if missing_columns(other) is None:
            raise
        return error


def _read_protected(options: Mapping[str, Any]) -> Traces:
    """Read PROTECTED; names of files and folders are its users only if it has no users itself.

    Without users, columns are missing, or several files have one name.
    """
    if options["user"] in BY_PLACE:
        with suppress(ValueError):  # another fault is one of the second reading, too
            return _read_reported({**options, "user": ...}, role="PROTECTED")
    return _read_reported(options, role="PROTECTED")


def _read_reported(options: Mapping[str, Any], *, role: str = "INPUT") -> Traces:
    """Read a file or folder, and report its size."""
    click.echo(f"reading {role} …", err=True)
    traces = pg.read_file(**options, as_traces=True)
    by_file = options["user"] is ... and users_are_files(options["source"], traces)
    click.echo(f"{role}: {size(traces)}{', each file a user (else pass --user folder)' if by_file else ''}", err=True)
    return traces


def _used_options(context: click.Context) -> list[set[str]]:
    """Return the options of reading that apply to INPUT and to PROTECTED; raise if one that is passed never applies."""
    options = context.ensure_object(dict)
    passed = [name for name in READING if options[name] and name != "tz"]  # times with a zone have none to specify
    places = [Path(place) for place in (options["source"], context.params.get("protected")) if place is not None]
    if not passed or not all(place.is_file() or place.is_dir() for place in places):
        return [set(READING) for _ in places]
    named = options["format"] or (options["columns"] and "table")
    formats = [named or guess_format(places[0]), *map(guess_format, places[1:])]
    used = [used_options(place, format) for place, format in zip(places, formats, strict=True)]
    unused = [name for name in passed if name not in set().union(*used)]
    if unused:
        names = " and ".join(f"--{name.replace('_', '-')}" for name in unused)
        saved = [name for name in unused if context.get_parameter_source(name) is ParameterSource.DEFAULT_MAP]
        stand, them = ("It stands", "it") if len(saved) == 1 else ("They stand", "them")
        cure = f"{stand} in the file of --config: remove {them} there." if saved else "Omit it."
        raise ValueError(
            f"INPUT (format '{formats[0]}') is read without {names}, because it specifies this itself or needs none. "
            f"{cure}"
        )
    return used


def has_columns(context: click.Context) -> bool:
    """Return whether INPUT has columns by which it is read."""
    options = context.ensure_object(dict)
    source = Path(options["source"])
    named = options["format"] or (options["columns"] and "table") or guess_format(source)
    return "time" in used_options(source, named)


def users_are_files(source: str, traces: Traces) -> bool:
    """Return whether a source is a folder in which the names of several files are the users."""
    files = {user_of_file(Path(name)) for _, _, names in os.walk(source) for name in names}
    return len(traces) > 1 and files.issuperset(map(str, traces.users.tolist()))


def _input_options(context: click.Context) -> dict[str, Any]:
    """Return INPUT and the options for it alone."""
    options = context.ensure_object(dict)
    errors = "skip" if options["skip"] else "raise"
    with usage_errors():  # the decimal and the separator may be the same
        check_text_options(**{name: options[name] for name in _OF_TEXT})
    return {name: options[name] for name in ("source", "format", *_OF_FILE)} | {"errors": errors}


def column_options(context: click.Context) -> dict[str, Any]:
    """Return the columns and the CRS that the shared options specify."""
    options = context.ensure_object(dict)
    if options["one_trace"] and options["user"]:
        raise click.UsageError(
            "--one-trace means that there is no user column, and --user names one. Specify one of them."
        )
    names = {name: options[name] or default for name, default in {"user": ..., **_NO_NAMES, "crs": None}.items()}
    return {**names, "user": None} if options["one_trace"] else names


def read_shapes(path: str | None, *, option: str, kinds: str = "lines or polygons") -> gpd.GeoDataFrame | None:
    """Return the geometries of the file that an option names; None without one."""
    if path is None:
        return None
    name = click.format_filename(path)
    if not Path(path).is_file():
        reason = "is a folder. Name a file." if Path(path).is_dir() else "does not exist."
        raise FileNotFoundError(f"{option} {name} {reason}")
    unreadable = f"{option} {name} cannot be read as {kinds}."
    layers = _layers_with_features(path)
    if len(layers) > 1:
        raise ValueError(
            f"{option} {name} has several layers: {listed(layers)}. Write the one with the {kinds} to a file of its "
            "own."
        )
    try:
        named = {"layer": layers[0]} if layers else {}
        shapes = gpd.read_parquet(path) if Path(path).suffix == ".parquet" else gpd.read_file(path, **named)
    except Exception as error:  # of GDAL, Arrow or geopandas
        raise ValueError(unreadable) from error
    if not isinstance(shapes, gpd.GeoDataFrame):  # a table without geometries
        raise ValueError(unreadable)
    if (shapes.geometry.isna() | shapes.geometry.is_empty).all():
        raise ValueError(f"{option} {name} is empty: it has no {kinds}. Omit {option}, or name another file.")
    return shapes


def _layers_with_features(path: str) -> list[str]:
    """Return the names of the layers with geometries, if GDAL finds several layers in a file."""
    with suppress(Exception):  # which reading it reports
        layers = pyogrio.list_layers(path)
        if len(layers) > 1:
            named = [name for name, geometry in layers if geometry is not None]
            return [name for name in named if pyogrio.read_info(path, layer=name, force_feature_count=True)["features"]]
    return []


def write(traces: Traces, output: str, *, force: bool) -> None:
    """Write OUTPUT, which notes what protected the data, and report its size."""
    click.echo("writing OUTPUT …", err=True)
    pg.write(traces, output, force=force)
    click.echo(f"{click.format_filename(output)}: {size(traces)}")


def size(traces: Traces) -> str:
    """Return the number of records and traces as text."""
    return f"{counted(traces.records, 'record')} of {counted(len(traces), 'trace')}"
