"""The command publish."""

import json
import os
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click
import pandas as pd
from click.core import ParameterSource

import promesse_geo as pg
from promesse_geo.cli import layout, options, values
from promesse_geo.cli.data_sets import data_set_options, work_options, writes_data_set
from promesse_geo.cli.errors import expected_errors, usage_errors, with_options_named
from promesse_geo.cli.zones import PLACES, SECRET, ZONES, make_zones, read_secret, read_zones
from promesse_geo.io.atomic import check_target, write_text
from promesse_geo.mechanisms import Mechanism, mechanism_classes
from promesse_geo.mechanisms.recommendations import KINDS
from promesse_geo.messages import DroppedWarning
from promesse_geo.plot.page import ENDINGS
from promesse_geo.preprocess.problems import FASTEST
from promesse_geo.publication.choices import CALENDARS
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_ending, check_zone, set_fields

_OF_ONE_RUN = {"source", "output", "dry_run", "report", "json", "save_config", "config", "force"}  # not in --config


def option_name(kind: type) -> str:
    """Return the name of a class on the command line: GeoIndistinguishability is geo-indistinguishability."""
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in kind.__name__).lstrip("-")


_WITH_OPTIONS = (pg.PrivacyZones, pg.Chain)  # made by options of zones
MECHANISMS = {
    option_name(kind): kind
    for kind in mechanism_classes().values()
    if kind.__module__.startswith("promesse_geo.mechanisms.") and kind not in _WITH_OPTIONS
}
_CHOSEN = ("epsilon", "ends", "max_interval", "zone_radius", "zone_offset", "zones", "places", "secret_file")
_INSTEAD = {
    "people": "Specify --epsilon, --ends, --zone-radius and --zone-offset instead of --recommended people, with "
    "smaller values than its --epsilon 200 --ends 400 --zone-radius 700 --zone-offset 600.",
    "fleet": "Specify --epsilon and --ends instead of --recommended fleet, with smaller values than its --epsilon 200 "
    "--ends 1000.",
}
"""What to change if nothing is left of the data with --recommended."""
_PATHS = {"zones", "secret_file", "scratch"}  # in --config relative to its folder
_OF_PEOPLE = ("zones", "places", "secret_file")  # which go with --recommended people


def _load_config(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """Take the choices of a file as defaults of the options."""
    context.ensure_object(dict)["config"] = value
    if value is None:
        return
    name = click.format_filename(value)
    try:
        choices = json.loads(Path(value).read_text(encoding="utf-8-sig"), object_pairs_hook=_unique)
    except UnicodeDecodeError:
        raise click.BadParameter(f"{name} is not text in UTF-8, as JSON is.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise click.BadParameter(f"{name} cannot be read as JSON: {error}") from None
    if not isinstance(choices, dict):
        raise click.BadParameter(f"{name} must hold a JSON object, as --save-config writes it.")
    known = {str(option.name): option for option in context.command.params if option.name not in _OF_ONE_RUN}
    if unknown := sorted(set(choices) - set(known)):
        raise click.BadParameter(f"{name} holds unknown choices: {', '.join(unknown)}.")
    wrong = sorted(key for key, choice in choices.items() if not _fits(choice, known[key]))
    if wrong:
        raise click.BadParameter(f"{name} holds wrong values of {', '.join(wrong)}: see --help.")
    # as text, numbers are checked as on the command line
    context.default_map = {
        key: choice if isinstance(choice, bool | list) else str(choice) for key, choice in choices.items()
    }
    folder = Path(value).parent
    context.default_map |= {key: str(folder / str(choices[key])) for key in _PATHS & set(choices)}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; raise ValueError if a key stands twice."""
    if len(pairs) != len({key for key, _ in pairs}):
        raise ValueError("a key stands twice.")
    return dict(pairs)


def _fits(choice: Any, option: click.Parameter) -> bool:
    """Whether a value of JSON is a bool for a flag, a list of text for a repeated option, else text or a number."""
    if getattr(option, "is_flag", False):
        return isinstance(choice, bool)
    if getattr(option, "multiple", False):
        return isinstance(choice, list) and all(isinstance(text, str) for text in choice)
    return isinstance(choice, str | int | float) and not isinstance(choice, bool)


def _save_config(context: click.Context, path: str, *, force: bool) -> None:
    """Write the choices that differ from the defaults as JSON."""
    values = {**context.params, **context.obj}
    chosen = {
        option.name: values[option.name]
        for option in context.command.params
        if option.name not in _OF_ONE_RUN
        and context.get_parameter_source(str(option.name)) is not ParameterSource.DEFAULT
    }
    folder = Path(path).parent.resolve()
    chosen |= {str(key): _relative(chosen[key], folder) for key in _PATHS & set(chosen)}
    text = json.dumps(chosen, indent=2, ensure_ascii=False) + "\n"
    write_text(Path(path), text, force=force, private=False)


def _relative(path: str, folder: Path) -> str:
    """Return a path that means the same relative to a folder."""
    if Path(path).is_absolute():
        return path
    with suppress(ValueError):  # of another drive
        return os.path.relpath(Path(path).resolve(), folder)
    return str(Path(path).resolve())


def _check_secret_of_config(context: click.Context) -> None:
    """Raise FileNotFoundError if --config names the file of a secret that does not exist."""
    path = context.obj["secret_file"]
    is_of_config = context.get_parameter_source("secret_file") is ParameterSource.DEFAULT_MAP
    if is_of_config and not Path(path).exists():
        secret, config = click.format_filename(path), click.format_filename(context.obj["config"])
        raise FileNotFoundError(
            f"The file of the secret that {config} names, {secret}, does not exist. With another secret the "
            "displacements of several publications of the same people average out. Put the file there, or for a first "
            "publication make it with --secret-file FILE."
        )


def _protection(choices: dict[str, Any], parameters: tuple[str, ...]) -> Mechanism:
    """Return the mechanism that the options specify, with its privacy zones."""
    if choices["recommended"]:
        has_zones = choices["recommended"] == "people"
        of_people = [f"--{name.replace('_', '-')}" for name in _OF_PEOPLE if choices[name] is not None]
        if of_people and not has_zones:
            raise ValueError(
                f"{', '.join(of_people)} goes with --recommended people only: a fleet gets no zones. Omit it."
            )
        replaced = [name for name in _CHOSEN if not (has_zones and name in _OF_PEOPLE)]
        others = [f"--{name.replace('_', '-')}" for name in replaced if choices[name] is not None]
        others += ["--parameter"] * bool(parameters) + ["--mechanism"] * (choices["mechanism"] != "promesse")
        if others:
            raise ValueError(f"--recommended replaces {', '.join(others)}. Specify one of them.")
        secret = read_secret(choices["secret_file"], dry_run=choices["dry_run"]) if has_zones else None
        shapes = read_zones(choices["zones"])
        made = pg.recommended(choices["recommended"], seed=secret, places=choices["places"] or 1, zones=shapes)
        for each in (made, *getattr(made, "mechanisms", ())):
            set_fields(each, {"remedy": _INSTEAD[choices["recommended"]]})
        return made
    given = {name: choices[name] for name in ("epsilon", "ends", "max_interval")}
    mechanism = make_mechanism(choices["mechanism"], given, parameters, is_recommended=True)
    radius, offset = choices["zone_radius"], choices["zone_offset"]
    if radius is None and choices["zones"] is None:
        if offset is not None or choices["places"] is not None or choices["secret_file"] is not None:
            raise ValueError("--zone-offset, --places and --secret-file need --zone-radius or --zones.")
        return mechanism
    return pg.Chain([make_zones(choices, radius, offset), mechanism])


def make_mechanism(
    name: str, given: dict[str, Any], parameters: tuple[str, ...], *, is_recommended: bool = False
) -> Mechanism:
    """Return the mechanism of this name with parameters given as options, if any, and as NAME=VALUE.

    The error without a needed parameter names --recommended first if the command has it (`is_recommended`).
    """
    kind = MECHANISMS[name]
    known = {field.name: field for field in fields(kind) if field.init and field.name != "seed"}
    values = {parameter: value for parameter, value in given.items() if value is not None}
    for text in parameters:
        parameter, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--parameter must be NAME=VALUE, such as epsilon=200. Got {text!r} instead.")
        if parameter in values:
            raise ValueError(f"--parameter: {parameter!r} is specified twice. Specify it once.")
        values[parameter] = _parse(value)
    unknown = ", ".join(sorted(set(values) - set(known)))
    if unknown:
        names = ", ".join(known)
        raise ValueError(f"{name} has no parameter {unknown} (--parameter) to publish with, only {names}.")
    try:
        return kind(**values)
    except TypeError as error:
        if "required" in str(error):
            if is_recommended and kind is pg.Promesse:
                raise ValueError(
                    "No protection is specified. Specify --recommended people for traces of people, --recommended "
                    f"fleet for vehicles that many people drive, or parameters of {name}: --epsilon, or --parameter "
                    f"with {', '.join(known)}."
                ) from None
            raise ValueError(f"{name} needs --epsilon or --parameter: {', '.join(known)}.") from None
        raise


def _parse(text: str) -> Any:
    """Return a number, a bool or null of JSON, else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


_FILE = "FILE"
_OPTIONS = (
    options.shared_option(
        "--epsilon",
        "Parameter of the mechanism; for Promesse metres, such as 200.",
        kind=values.NUMBER,
        metavar="VALUE",
    ),
    options.shared_option("--mechanism", "The protection.", kind=click.Choice(list(MECHANISMS)), default="promesse"),
    options.shared_option(
        "--recommended",
        "What we recommend for people (with --places or --zones, too) or a fleet, instead of --epsilon and others.",
        kind=click.Choice(KINDS),
    ),
    options.shared_option(
        "--ends",
        "Promesse: also cut a random length of up to METRES from each end, such as 400.",
        kind=values.NUMBER,
        metavar="METRES",
    ),
    options.shared_option("--max-interval", "Promesse: drop traces with more time between points.", metavar="DURATION"),
    options.shared_option(
        "--zone-radius", "Remove zones of this radius around homes.", kind=values.NUMBER, metavar="METRES"
    ),
    options.shared_option(
        "--zone-offset", "Greatest displacement of the centre of a zone.", kind=values.NUMBER, metavar="METRES"
    ),
    ZONES,
    PLACES,
    SECRET,
    click.option(
        "--parameter", multiple=True, metavar="NAME=VALUE", help="Another parameter of the mechanism; may be repeated."
    ),
    options.shared_option(
        "--calendar",
        "; ".join(f"{name}: {text}" for name, text in CALENDARS.items()) + ".",
        kind=click.Choice(list(CALENDARS)),
        default="common",
    ),
    options.shared_option(
        "--gap", "Shortest gap at which a trace is split, such as 90min.", default="4h", metavar="DURATION"
    ),
    options.shared_option(
        "--min-days", "Drop users with fewer days of data.", kind=values.Whole(min=1), metavar="NUMBER"
    ),
    options.shared_option(
        "--max-speed",
        "Drop records that cannot be reached at this speed in m/s.",
        kind=values.SPEED,
        default=FASTEST,
        metavar="SPEED",
    ),
    options.shared_option("--keep-zero", "Keep fixes at exactly longitude 0 and latitude 0.", kind=bool),
    options.shared_option("--dry-run", "Do all but write OUTPUT, which may be omitted.", kind=bool),
    options.shared_option("--report", "Write what is printed to FILE, an .html page.", metavar=_FILE),
    options.shared_option("--json", "Print counts, measures and audit as JSON.", kind=bool),
    options.shared_option("--save-config", "Write the choices to FILE, which ends in .json.", metavar=_FILE),
    click.option(
        "--config",
        metavar=_FILE,
        is_eager=True,
        expose_value=False,
        callback=_load_config,
        help="Take choices from FILE.",
    ),
)


def _publish_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of publishing to a command."""
    return options.with_options(command, _OPTIONS)


@layout.command(short_help="Do all steps: clean, prepare, protect, check, rename, write.")
@options.input_options
@click.argument("output", metavar="OUTPUT", required=False)
@_publish_options
@data_set_options
@options.force_option
def publish(context: click.Context, output: str | None, parameter: tuple[str, ...], force: bool) -> None:
    """Make OUTPUT, a file to publish, from the raw trajectories of INPUT.

    Drop fixes at (0, 0) and impossible jumps, move days to a common calendar, split traces at gaps, protect them, check
    the result against the original, rename users, and write OUTPUT, unless a test fails. What was odd, what was
    dropped and what attacks still find is printed.

    If INPUT is a folder of Parquet and OUTPUT has no extension, OUTPUT is a folder, too, and users are checked in
    groups that fit into --memory, which is a plan and not a limit.

    Publish the same people only once: two publications can be joined.
    """
    choices = context.obj
    if output is None and not choices["dry_run"]:
        raise click.UsageError("Missing argument 'OUTPUT'. Name a file, or pass --dry-run.")
    with expected_errors(), usage_errors():
        _check_secret_of_config(context)
        mechanism = _protection(choices, parameter)
        zone = None if choices["tz"] is None else check_zone(choices["tz"], name="tz", owner="publish")
        gap = options.as_nanoseconds(choices["gap"], name="gap", owner="publish")
    with expected_errors():
        is_data_set = writes_data_set(context, output)
        _check_targets(context, output, force=force, is_data_set=is_data_set)
        if choices["save_config"]:
            _save_config(context, choices["save_config"], force=force)
        names = ("calendar", "min_days", "max_speed", "keep_zero", "dry_run")
        parameters = {name: choices[name] for name in names} | {"tz": zone, "gap": pd.Timedelta(gap, unit="ns")}
        if is_data_set:
            with work_options(context) as work:
                source = choices["source"]
                result = pg.publish_parquet(source, output, mechanism, force=force, **parameters, **work)
        else:
            traces, dropped = _read(context)
            result = pg.publish(traces, output, mechanism, force=force, **parameters).after_reading(dropped)
        result = _with_options(result)
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        click.echo(result.to_json() if choices["json"] else result.to_text(width=width))
        if choices["report"]:
            write_text(Path(choices["report"]), result.to_html(), force=force, private=False)
    if not result.passed:
        sys.exit(3)


def _with_options(result: pg.Publication) -> pg.Publication:
    """Return a publication whose texts name options as they are typed."""
    audit = result.audit.assign(reason=result.audit["reason"].map(with_options_named))
    notes, summary = (tuple(map(with_options_named, texts)) for texts in (result.notes, result.summary))
    return replace(result, audit=audit, notes=notes, summary=summary)


def _read(context: click.Context) -> tuple[Traces, dict[str, int]]:
    """Read INPUT with all warnings shown; return what was dropped, by reason, too."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        traces = options.read(context)
    dropped = Counter[str]()
    for warning in caught:
        if isinstance(warning.message, DroppedWarning):
            dropped.update(warning.message.counts)
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return traces, dropped


def _check_targets(context: click.Context, output: str | None, *, force: bool, is_data_set: bool) -> None:
    """Raise before long work if a file cannot be written, or is INPUT or another file of this run."""
    if output is not None and not context.obj["dry_run"]:
        if is_data_set:
            options.check_not_input(output, {"INPUT": context.obj["source"]})
        else:
            options.check_target(context, output, force=force)
    taken = {} if output is None else {"OUTPUT": output}
    if context.obj["config"]:
        taken["--config"] = context.obj["config"]
    for option, endings in (("report", ENDINGS), ("save_config", (".json",))):
        if path := context.obj[option]:
            name = f"--{option.replace('_', '-')}"
            options.check_not_input(path, {"INPUT": context.obj["source"]}, name=name)
            for other, used in taken.items():
                if Path(path).resolve() == Path(used).resolve():
                    raise click.UsageError(f"{name} and {other} are the same file. Specify another path.")
            with usage_errors():
                check_ending(Path(path), endings, name=option, owner="publish")
            check_target(path, force=force)
            taken[name] = path


COMMANDS = (publish,)
