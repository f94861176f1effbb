"""The help of commands: how it is wrapped, and in which sections options stand."""

import shutil
import sys
import textwrap
from collections.abc import Iterable
from functools import partial
from typing import Any

import click

from promesse_geo.io.contents import check_exists

_UNBROKEN = "\u2011"  # a hyphen at which lines are not broken


class _Formatter(click.HelpFormatter):
    """A formatter that breaks no line within an option, a file name or another word with a hyphen."""

    def write_text(self, text: str) -> None:
        super().write_text(text.replace("-", _UNBROKEN))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        super().write_dl([(name, text.replace("-", _UNBROKEN)) for name, text in rows], col_max, col_spacing)

    def getvalue(self) -> str:
        return super().getvalue().replace(_UNBROKEN, "-")


class _Context(click.Context):
    formatter_class = _Formatter


class ReadingOption(click.Option):
    """An option that says how INPUT is read; many commands have the same ones."""


class DataSetOption(click.Option):
    """An option for an INPUT that is a folder of Parquet, and an OUTPUT that is a folder, too."""


_SECTIONS: tuple[tuple[str, type[click.Option]], ...] = (
    ("Options", click.Option),
    ("Options of a folder of Parquet as INPUT, and a folder as OUTPUT", DataSetOption),
    ("Options of reading INPUT", ReadingOption),
)


class Command(click.Command):
    """A command whose help lists its own options first, and then those that several commands have."""

    context_class = _Context

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list of options for each section."""
        options = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option)]
        for title, kind in _SECTIONS:
            listed = [option for option in options if type(option) is kind]
            records = [record for option in listed if (record := option.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, unless an input does not exist: that is said before anything of the output."""
        try:
            for path in (ctx.ensure_object(dict).get("source"), ctx.params.get("protected")):
                if path is not None and str(path) != "-":  # which readers refuse in words
                    check_exists(path)
        except OSError as error:
            say(f"Error: {error}")
            ctx.exit(1)
        return super().invoke(ctx)


class Sections(click.Group):
    """A group of commands that lists them by section."""

    context_class = _Context
    sections: dict[str, list[str]]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of each section with their short help."""
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(80)) for name in names], col_max=26)


def say(text: str, *, err: bool = True) -> None:
    """Write text to standard error, or to standard output, wrapped between words if that is a terminal."""
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        width = shutil.get_terminal_size().columns
        text = textwrap.fill(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    click.echo(text, err=err)


command = partial(click.command, cls=Command)
"""Make a function a command, as `click.command` does."""
