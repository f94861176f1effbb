"""Folders of Parquet that are protected in bounded memory, for the commands that protect files."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

import promesse_geo as pg
from promesse_geo.bulk.plan import ENDINGS
from promesse_geo.cli import layout, options, values
from promesse_geo.io.registry import find_readable
from promesse_geo.io.sources import files_inside
from promesse_geo.io.writers.output import WRITERS
from promesse_geo.mechanisms import Mechanism
from promesse_geo.traces.values import UNITS

_option = partial(options.shared_option, cls=layout.DataSetOption)
_OPTIONS = (
    _option("--memory", "Memory to use; 2GB by default.", kind=values.MEMORY, metavar="SIZE"),
    _option("--scratch", "Folder for true data beyond memory; beside OUTPUT by default.", metavar="FOLDER"),
    _option("--workers", "Threads; one for each processor by default.", kind=values.Whole(min=1), metavar="NUMBER"),
    _option(
        "--dask",
        "Address of a Dask scheduler to use instead of threads, such as tcp://host:8786.",
        kind=values.ADDRESS,
        metavar="ADDRESS",
    ),
    _option("--time-unit", "Unit of the times that are written; us for Spark.", kind=click.Choice(list(UNITS))),
)
_NAMES = ("memory", "scratch", "workers", "dask", "time_unit")
_UNUSED = ("format", "layer", "columns", "separator", "decimal", "encoding", "time_format")


def data_set_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of folders of Parquet to a command."""
    return options.with_options(command, _OPTIONS)


def writes_data_set(context: click.Context, output: str | None) -> bool:
    """Whether INPUT is a folder of Parquet and OUTPUT is one, too: it is omitted or has no known extension.

    If OUTPUT is omitted, INPUT has files of other formats, too, and no option is passed that only folders of Parquet
    have, all are read at once.

    Raises
    ------
    click.UsageError
        If options are passed that only the other case has.
    """
    choices = context.ensure_object(dict)
    source = Path(choices["source"])
    is_folder = source.is_dir() and any(files_inside(source, lambda file: file.suffix.lower() in ENDINGS))
    is_data_set = is_folder and (output is None or Path(output).suffix.lower() not in WRITERS)
    if is_data_set and output is None and not any(choices[name] for name in _NAMES):
        is_data_set = not find_readable(source, but=ENDINGS)
    passed = [f"--{name.replace('_', '-')}" for name in (_UNUSED if is_data_set else _NAMES) if choices[name]]
    if passed and is_data_set:
        raise click.UsageError(f"{' and '.join(passed)}: not used for a folder of Parquet. Omit it.")
    if passed:
        raise click.UsageError(
            f"{' and '.join(passed)}: only for an INPUT that is a folder of Parquet, and an OUTPUT without an "
            "extension, which is a folder, too."
        )
    return is_data_set


def protect_data_set(
    context: click.Context,
    mechanism: Mechanism | None,
    *,
    output: str,
    keep_users: bool,
    force: bool,
    prepare: Mapping[str, Any] | None = None,
) -> None:
    """Protect INPUT, a folder of Parquet, and report what was written to the folder OUTPUT.

    Parameters
    ----------
    mechanism, prepare, keep_users, force
        As for `protect_parquet`.
    output : str
        The folder to write.
    """
    choices = context.ensure_object(dict)
    if choices["tz"] and prepare is None:
        raise click.UsageError("--tz: not used for a folder of Parquet, whose times have their zone. Omit it.")
    options.check_not_input(output, {"INPUT": choices["source"]})
    with work_options(context) as work:
        report = pg.protect_parquet(
            choices["source"], output, mechanism, prepare=prepare, keep_users=keep_users, force=force, **work
        )
    click.echo(f"{click.format_filename(output)}: {report}")


@contextmanager
def work_options(context: click.Context) -> Iterator[dict[str, Any]]:
    """Yield the parameters of reading and working that options choose, by name."""
    choices = context.ensure_object(dict)
    with _executor(choices) as executor:
        yield {
            "memory": choices["memory"] or "2GB",
            "executor": executor,
            "scratch": choices["scratch"],
            "errors": "skip" if choices["skip"] else "raise",
            "time_unit": choices["time_unit"],
            **options.column_options(context),
        }


@contextmanager
def _executor(choices: Mapping[str, Any]) -> Iterator[Executor | None]:
    """Yield the executor that options choose; None for threads."""
    if choices["dask"] is not None:
        if choices["workers"] is not None:
            raise click.UsageError("--dask has its own workers: omit --workers.")
        try:
            distributed = import_module("distributed")
        except ImportError:
            raise click.UsageError("--dask needs Dask: pip install 'promesse-geo[dask]'.") from None
        with distributed.Client(choices["dask"]) as client:
            yield client.get_executor()
    elif choices["workers"] is not None:
        with ThreadPoolExecutor(choices["workers"]) as pool:
            yield pool
    else:
        yield None
