"""The help of commands: how it is wrapped, and in which sections options stand."""

from collections.abc import Iterable
from functools import partial

import click

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


class Command(click.Command):
    """A command whose help lists its own options first, and then those that say how INPUT is read."""

    context_class = _Context

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write both lists of options."""
        options = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option)]
        of_reading = [option for option in options if isinstance(option, ReadingOption)]
        own = [option for option in options if option not in of_reading]
        for title, listed in (("Options", own), ("Options of reading INPUT", of_reading)):
            records = [record for option in listed if (record := option.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class Sections(click.Group):
    """A group of commands that lists them by section."""

    context_class = _Context
    sections: dict[str, list[str]]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of each section with their short help."""
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(80)) for name in names], col_max=26)


command = partial(click.command, cls=Command)
"""Make a function a command, as `click.command` does."""
