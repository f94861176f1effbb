"""The command `promesse-geo`, and the commands that describe, prepare, check and rename."""

import re
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import click

import promesse_geo as pg
from promesse_geo.audit import (
    CLOSING,
    FAILED,
    REVIEW,
    Finding,
    check_epsilon,
    check_files,
    check_published,
    check_row_order,
    file_mechanism,
    replace_findings,
)
from promesse_geo.cli import layout, options, values
from promesse_geo.cli import maps as cli_maps
from promesse_geo.cli import measures as cli_measures
from promesse_geo.cli import protect as cli_protect
from promesse_geo.cli import publish as cli_publish
from promesse_geo.cli import tune as cli_tune
from promesse_geo.cli import zones as cli_zones
from promesse_geo.cli.data_sets import data_set_options, protect_data_set, writes_data_set
from promesse_geo.cli.errors import expected_errors, usage_errors, with_options_named
from promesse_geo.io.registry import LABELS
from promesse_geo.io.writers import WRITERS
from promesse_geo.messages import counted
from promesse_geo.plot.tables import description, findings

_HELP = f"""Anonymize GPS trajectories before you publish them.

INPUT is a file or folder, whose format is detected from its content: {LABELS}.

OUTPUT is a file, whose extension sets the format: {", ".join(WRITERS)}.
"""
_EPILOG = """
\b
To publish:
  promesse-geo publish raw.csv public.parquet --tz Europe/Paris \\
    --recommended people

\b
The same protection step by step: compare with the users kept, then rename
them. By default `prepare` keeps 20 days of each user:
  promesse-geo prepare raw.csv parts.parquet --tz Europe/Paris \\
    --max-speed 350 --days 9999 --keep-users
  promesse-geo zones parts.parquet rest.parquet --radius 700 --offset 600 \\
    --secret-file secret.txt --keep-users
  promesse-geo smooth rest.parquet safe.parquet --epsilon 200 --ends 400 \\
    --keep-users
  promesse-geo check parts.parquet safe.parquet
  promesse-geo report parts.parquet safe.parquet risks.html
  promesse-geo pseudonymize safe.parquet published.parquet
  promesse-geo check parts.parquet published.parquet

\b
Exit status: 0 success; 1 error, the reason is on stderr; 2 wrong usage;
3 a test of `publish` or `check` failed.
"""


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Make SIGTERM and SIGHUP end a command as an error does, so that incomplete files are removed.

    Further signals, Ctrl-C too, do not interrupt that.
    """
    handlers: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():  # only it may change handlers
        numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name)]
        handlers = {number: signal.getsignal(number) for number in numbers}

    def end(number: int, frame: Any) -> None:
        for each in changed:
            signal.signal(each, signal.SIG_IGN)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + number)

    known = (signal.SIG_DFL, signal.default_int_handler)  # nohup ignores SIGHUP
    changed = [number for number, handler in handlers.items() if handler in known]
    for number in changed:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, handlers[number])


@click.group(
    cls=layout.Sections,
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_EPILOG,
)
@click.version_option(pg.__version__, prog_name="promesse-geo")
@click.pass_context
def main(context: click.Context) -> None:
    """Run a command; signals end it as an error does."""
    context.with_resource(_exit_on_signals())


@layout.command(short_help="Run the checks before publication.")
@options.input_options
@click.argument("protected", metavar="PROTECTED")
@click.option(
    "--epsilon",
    type=values.NUMBER,
    metavar="METRES",
    help="Length that is hidden at both ends of a trace; by default as the metadata of PROTECTED state.",
)
def check(context: click.Context, protected: str, epsilon: float | None) -> None:
    """Run the checks before publication on PROTECTED, made from INPUT.

    Check twice: first with the users of INPUT (--keep-users), which compares trace by trace, then after pseudonymize.

    Each test passes, fails, is to be reviewed (only you can decide that), or is left out, as first and last points are
    after pseudonymize. What failed or is to be reviewed stands first. The exit status is 3 if any test failed, else 0.
    INPUT and PROTECTED that are swapped are an error.
    """
    with usage_errors():
        check_epsilon(epsilon)
    with expected_errors():
        before, after = options.read_both(context, protected)
        table = check_published(before, after, epsilon=epsilon, mechanism=file_mechanism(protected))
        of_files = (Finding(*row) for row in check_files(protected, after).itertuples(index=False))
        table = replace_findings(table, [check_row_order(after), *of_files])
        table["reason"] = table["reason"].map(with_options_named)
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        click.echo(_COLOURED.sub(_coloured, findings(table, width=width)))
        reviews = int((table["verdict"] == REVIEW).sum())
        if reviews:
            layout.say(f"{counted(reviews, 'test')} to review: only you can decide whether to publish.")
        layout.say(CLOSING)
    if (table["verdict"] == FAILED).any():
        sys.exit(3)


_COLOURED = re.compile(rf"^(?:{FAILED}|{REVIEW}|[\d,]+ (?:of [\d,]+ )?tests? passed)", re.MULTILINE)


def _coloured(match: re.Match[str]) -> str:
    """Colour a verdict; click removes the colour where standard output is no terminal."""
    colour = {FAILED: "red", REVIEW: "yellow"}.get(match[0], "green")
    return click.style(match[0], fg=colour, bold=True)


@layout.command(short_help="Preprocess: common calendar, first days, split at gaps.")
@options.input_options
@options.output_argument
@click.option(
    "--days",
    type=values.Whole(min=1),
    metavar="NUMBER",
    default=20,
    show_default=True,
    help="Days of data to keep per user.",
)
@click.option("--min-days", type=values.Whole(min=1), metavar="NUMBER", help="Drop users with fewer days of data.")
@click.option(
    "--max-speed",
    type=values.SPEED,
    metavar="SPEED",
    help="First drop jumps, which need more than this speed in m/s: 350 drops errors, 50 flights and fast trains too.",
)
@click.option("--keep-zero", is_flag=True, help="Keep fixes at exactly longitude 0 and latitude 0.")
@click.option(
    "--gap",
    default="4h",
    show_default=True,
    metavar="DURATION",
    callback=options.as_duration,
    help="Shortest gap at which a trace is split, such as 90min; a number alone is seconds.",
)
@click.option("--keep-zone", is_flag=True, help="Write times in UTC, for programs that need a zone.")
@data_set_options
@options.keep_users_option
@options.force_option
def prepare(
    context: click.Context,
    output: str,
    days: int,
    min_days: int | None,
    max_speed: float | None,
    keep_zero: bool,
    gap: timedelta,
    keep_zone: bool,
    keep_users: bool,
    force: bool,
) -> None:
    """Preprocess INPUT as in the paper: common calendar, first days, traces split at gaps.

    First drop fixes at exactly (0, 0), unless you pass --keep-zero, and jumps, if you pass --max-speed.

    Each part becomes a trace of a new virtual user. This protects nothing: locations are unchanged.
    """
    choices: dict[str, Any] = {"days": days, "min_days": min_days, "gap": gap, "keep_zone": keep_zone}
    choices |= {"tz": context.obj["tz"], "keep_zero": keep_zero, "max_speed": max_speed}
    with expected_errors():
        if writes_data_set(context, output):
            protect_data_set(context, None, output=output, keep_users=keep_users, force=force, prepare=choices)
            return
        options.check_target(context, output, force=force)
        traces = options.read(context)
        parts = pg.prepare(traces, keep_user=keep_users, **choices)
        if traces.records and not parts.records:
            remedy = "" if min_days is None else " Take fewer --min-days."
            dropped = f"{counted(traces.records, 'record')} of {counted(len(traces), 'trace')} were dropped."
            raise ValueError(f"Nothing is left to write: no record is left after preparation, all {dropped}{remedy}")
        options.write(parts, output, force=force)


@layout.command(short_help="Rename all users.")
@options.input_options
@options.output_argument
@options.force_option
def pseudonymize(context: click.Context, output: str, force: bool) -> None:
    """Rename every user of INPUT to 16 random hex digits, and sort the records by the new names.

    Use it for data that was protected with --keep-users and checked. Renaming alone protects nothing.
    """
    with expected_errors():
        options.check_target(context, output, force=force)
        renamed = pg.pseudonymize(options.read(context))
        options.write(renamed, output, force=force)


@layout.command(short_help="Describe: size, period, bounds, durations, and what is odd.")
@options.input_options
def info(context: click.Context) -> None:
    """Describe INPUT: records and traces, period and bounds, durations and intervals, and what is odd.

    Of a table, it names the columns that are used: trips are breaks of their users. Of a folder, it says if each file
    is a user.

    Odd are jumps, fixes at longitude and latitude 0, breaks, long gaps, equal times and users with one record.
    """
    with expected_errors():
        traces = options.read(context)
        by_file = options.users_are_files(context.obj["source"], traces)
        click.echo(description(traces, names_columns=options.has_columns(context), users_are_files=by_file))


@layout.command(short_help="Protect a synthetic city and show the result.")
@click.option("--out", metavar="FOLDER", default="promesse-demo", show_default=True, help="Folder to write to.")
@click.option(
    "--epsilon",
    type=values.NUMBER,
    metavar="METRES",
    default=200.0,
    show_default=True,
    help="Distance between published points.",
)
@options.force_option
def demo(out: str, epsilon: float, force: bool) -> None:
    """Protect a synthetic city with Promesse, and write the result and a figure to a folder."""
    with usage_errors():
        pg.Promesse(epsilon)
    with expected_errors():
        click.echo(pg.run_demo(Path(out), epsilon=epsilon, force=force))


_SECTIONS = {
    "Explore and prepare": (info, *cli_maps.COMMANDS, prepare, demo),
    "Protect": (*cli_zones.COMMANDS, *cli_protect.COMMANDS),
    "Measure": (*cli_measures.COMMANDS, *cli_tune.COMMANDS),
    "Publish": (*cli_publish.COMMANDS, check, pseudonymize),
}
main.sections = {title: [str(command.name) for command in commands] for title, commands in _SECTIONS.items()}
for command in chain(*_SECTIONS.values()):
    main.add_command(command)

if __name__ == "__main__":
    main()
