"""Types of the values of options: what the library refuses, whatever the data are, is a usage error."""

import re
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import click
import pandas as pd

import promesse_geo as pg
from promesse_geo.bulk.memory import check_memory
from promesse_geo.cli.errors import with_options_named
from promesse_geo.evaluation.arguments import check_jobs
from promesse_geo.io.text_layout import check_text_options
from promesse_geo.messages import invalid
from promesse_geo.traces.crs import read_crs
from promesse_geo.validation import check_integer, check_number, check_seed, check_zone, is_number, is_plain


class Checked(click.ParamType):
    """Text or a number that a function of the library accepts; it is passed on as it is.

    Parameters
    ----------
    check : callable
        Called with the value, `name=` and `owner=`; raises ValueError or TypeError.
    base : click.ParamType
        What the value is.
    """

    def __init__(self, check: Callable[..., Any], *, base: click.ParamType = click.STRING) -> None:
        self._check, self._base, self.name = check, base, base.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value; raise click.BadParameter with the rule if it is wrong."""
        try:
            converted = self._base.convert(value, param, ctx)
        except click.BadParameter:  # whose words have no rule
            converted = value
        if is_number(converted) and not is_plain(str(value)):
            converted = value
        if converted == "" and param is not None and param.callback is not None:  # which refuses it
            return converted
        name, owner = ("" if each is None else str(each) for each in (param and param.name, ctx and ctx.command.name))
        owner = owner.replace("-", "_")
        try:
            self._check(converted, name=name, owner=owner)
        except (ValueError, TypeError) as error:
            words = with_options_named(str(error))
            typed = "" if param is None else max(param.opts, key=len)
            self.fail(words.removeprefix(f"{typed} "), param, ctx)
        return converted


def _check_text(value: str, *, name: str, owner: str) -> None:
    """Check an option of text, such as its separator."""
    others = dict.fromkeys(("separator", "decimal", "encoding", "time_format", "columns"))
    check_text_options(**(others | {name: value}))


class Whole(click.IntRange):
    """A whole number in a range, which help shows."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; raise click.BadParameter with the rule if it is wrong."""
        check = partial(check_integer, low=int(self.min or 0), high=int(self.max or sys.maxsize))
        return Checked(check, base=click.INT).convert(value, param, ctx)


def _check_float(value: float, *, name: str, owner: str) -> None:
    """Check that an option is a number, whose range a mechanism or metric knows."""
    if not is_number(value):
        raise TypeError(invalid(name, owner, "a number", value))


def _check_period(value: str, *, name: str, owner: str) -> None:
    """Check a day, an hour or a minute."""
    rule = "a day such as '2008-05-18', an hour or a minute"
    try:
        period: Any = pd.Period(value) if value[:4].isdigit() and not set(value) - set("0123456789-T :.") else pd.NaT
    except (ValueError, TypeError) as error:
        raise ValueError(invalid(name, owner, rule, value)) from error
    if period is pd.NaT:  # as of nan
        raise ValueError(invalid(name, owner, rule, value))


def _check_address(value: str, *, name: str, owner: str) -> None:
    """Check the address of a scheduler of Dask."""
    if not re.fullmatch(r"inproc://\S+|([a-z]+://)?[^\s/]+:[0-9]+/?", value):
        raise ValueError(invalid(name, owner, "the address of a scheduler, such as tcp://host:8786", value))


def _check_file(value: str, *, name: str, owner: str) -> None:
    """Check that a name of a file is not empty."""
    if not value:
        raise ValueError(invalid(name, owner, "the path of a file", value, cure="Omit it, or name a file."))


def _check_tiles(value: str, *, name: str, owner: str) -> None:
    """Check the name of tiles."""
    pg.plot.check_tiles(value, name=name, owner=owner)


def _check_crs(value: str, *, name: str, owner: str) -> None:
    """Check a CRS."""
    read_crs(value)


ADDRESS = Checked(_check_address)
CRS = Checked(_check_crs)
FILE = Checked(_check_file)
JOBS = Checked(lambda value, *, name, owner: check_jobs(value, owner=owner), base=click.INT)
MEMORY = Checked(lambda value, *, name, owner: check_memory(value, owner=owner))
NUMBER = Checked(_check_float, base=click.FLOAT)
PERIOD = Checked(_check_period)
SEED = Checked(lambda value, *, name, owner: check_seed(value, owner=owner))
SPEED = Checked(partial(check_number, unit="metres per second"), base=click.FLOAT)
TEXT = Checked(_check_text)
TILES = Checked(_check_tiles)
ZONE = Checked(check_zone)
