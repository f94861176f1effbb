"""promesse-geo …: the accessor's verbs for files."""

import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta, tzinfo
from pathlib import Path

import click
import pandas as pd

import promesse_geo as pg
from promesse_geo.audit import (
    FAILED,
    NOT_COMPARABLE,
    REVIEW,
    Findings,
    check_epsilon,
    check_files,
    check_published,
    check_row_order,
    file_epsilon,
    file_mechanism,
)
from promesse_geo.cli import measures as cli_measures
from promesse_geo.cli import protect as cli_protect
from promesse_geo.cli.options import (
    as_pause,
    as_said,
    as_zone,
    check_target,
    force_option,
    in_plain_words,
    input_options,
    keep_users_option,
    output_argument,
    read,
    write,
    wrong_call,
)
from promesse_geo.io.registry import LABELS
from promesse_geo.io.writers import WRITERS
from promesse_geo.messages import counted
from promesse_geo.plot.tables import description, findings

_HELP = f"""Protect GPS traces before they are published.

INPUT is a file or folder, whose format is detected from its content: {LABELS}.

OUTPUT is a file, whose extension sets the format: {", ".join(WRITERS)}.
"""
_EPILOG = """
\b
Exit status: 0 done; 1 could not be done, the reason is on stderr; 2 the call was wrong;
3 `check` found something that fails or could not compare.

\b
To compare files later, prepare first and keep the prepared users while protecting:
  promesse-geo prepare raw.tar.gz prepared.parquet --tz America/Los_Angeles
  promesse-geo smooth prepared.parquet safe.parquet --epsilon 200 --keep-users
"""


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a command as an error does, which removes what is half written."""
    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        signals = []  # only the main thread may change handlers
    taken = [number for number in signals if signal.getsignal(number) is signal.SIG_DFL]  # nohup ignores SIGHUP
    for number in taken:
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


@click.group(
    help=_HELP, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=_EPILOG
)
@click.version_option(pg.__version__, prog_name="promesse-geo")
@click.pass_context
def main(context: click.Context) -> None:
    """Run a command, ended by signals as other programs are."""
    context.with_resource(_ended_by_signals())


@main.command(short_help="Run the checks before publication.")
@input_options
@click.argument("protected", metavar="PROTECTED")
@click.option("--epsilon", type=float, help="Metres hidden at both ends of a trace; by default as PROTECTED says.")
def check(context: click.Context, protected: str, epsilon: float | None) -> None:
    """Run the checks before publication on PROTECTED, made from INPUT.

    Check twice: first with the users of INPUT (--keep-users), which compares trace by trace, then after pseudonymize.

    Each test passes, fails, is not comparable, or is to be reviewed: only you can judge that. The exit status is 3 if
    any test failed or is not comparable, else 0.
    """
    with wrong_call():
        check_epsilon(epsilon)
    with in_plain_words():
        before, after = read(context), read(context, source=protected)
        table = check_published(before, after, epsilon=file_epsilon(protected) if epsilon is None else epsilon)
        options = as_said(context)
        of_files = check_files(protected, after, lon=options["lon"], lat=options["lat"])
        table = pd.concat((table[~table["test"].isin(of_files["test"])], Findings([check_row_order(after)]), of_files))
        click.echo(findings(table, width=shutil.get_terminal_size().columns if sys.stdout.isatty() else None))
        reviews = int((table["verdict"] == REVIEW).sum())
        if reviews:
            click.echo(f"{counted(reviews, 'test')} to review: only you can judge whether to publish.", err=True)
        click.echo("Passing all tests does not prove anonymity.", err=True)
    if table["verdict"].isin([FAILED, NOT_COMPARABLE]).any():
        sys.exit(3)


@main.command(short_help="Prepare as the paper does: days, parts.")
@input_options
@output_argument
@click.option(
    "--tz",
    callback=as_zone,
    help="Zone in which days begin, such as Europe/Paris; by default that of the times.",
)
@click.option(
    "--days", type=click.IntRange(min=1), default=20, show_default=True, help="Days of data to keep of each user."
)
@click.option("--min-days", type=click.IntRange(min=1), help="Leave out users with fewer days of data.")
@click.option(
    "--max-speed", type=float, help="First remove records that nobody could reach at so many m/s, such as 50."
)
@click.option(
    "--gap",
    default="4h",
    show_default=True,
    callback=as_pause,
    help="Shortest pause that cuts a trace, such as 90min; a number alone is seconds.",
)
@keep_users_option
@force_option
def prepare(
    context: click.Context,
    output: str,
    tz: tzinfo | None,
    days: int,
    min_days: int | None,
    max_speed: float | None,
    gap: timedelta,
    keep_users: bool,
    force: bool,
) -> None:
    """Prepare INPUT as the paper does: no empty days, the first days, parts between pauses.

    Each part gets a virtual user of its own. This protects nothing: places remain as they are.
    """
    with in_plain_words():
        check_target(context, output, force=force)
        traces = read(context)
        if max_speed is not None:
            traces = pg.drop_jumps(traces, max_speed=max_speed)
        parts = pg.prepare(traces, tz=tz, days=days, min_days=min_days, gap=gap, keep_user=keep_users)
        write(parts, output, mechanism=None, force=force)


@main.command(short_help="Give every user a new name.")
@input_options
@output_argument
@force_option
def pseudonymize(context: click.Context, output: str, force: bool) -> None:
    """Give every user of INPUT a new name of 16 hex digits, in no order that leads back.

    For what was protected with --keep-users and compared with `check`. This alone protects nothing.
    """
    with in_plain_words():
        check_target(context, output, force=force)
        write(pg.pseudonymize(read(context)), output, mechanism=file_mechanism(context.obj["source"]), force=force)


@main.command(short_help="Describe by the figures of the paper's Table I.")
@input_options
def info(context: click.Context) -> None:
    """Describe INPUT by the figures of the paper's Table I."""
    with in_plain_words():
        click.echo(description(read(context)))


@main.command()
@click.option("--out", default="promesse-demo", show_default=True, help="Folder to write to.")
@click.option("--epsilon", type=float, default=200.0, show_default=True, help="Metres between published points.")
@force_option
def demo(out: str, epsilon: float, force: bool) -> None:
    """Make a city, smooth it, and show what happened to it."""
    with wrong_call():
        pg.Promesse(epsilon)
    with in_plain_words():
        click.echo(pg.run_demo(Path(out), epsilon=epsilon, force=force))


for command in (*cli_protect.COMMANDS, *cli_measures.COMMANDS):
    main.add_command(command)

if __name__ == "__main__":
    main()
