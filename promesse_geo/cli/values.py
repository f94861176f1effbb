"""Types of the values of options: what the library refuses, whatever the data are, is a usage error."""

from collections.abc import Callable
from functools import partial
from typing import Any

import click
import pandas as pd

from promesse_geo.bulk.memory import check_memory
from promesse_geo.cli.errors import with_options_named
from promesse_geo.evaluation.runs import check_jobs
from promesse_geo.io.text_layout import check_text_options
from promesse_geo.messages import invalid
from promesse_geo.traces.crs import read_crs
from promesse_geo.validation import check_number, check_zone


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
        """Return the value; raise click.BadParameter if it is wrong."""
        converted = self._base.convert(value, param, ctx)
        if converted == "":  # which the callback of the option refuses
            return converted
        name, owner = ("" if each is None else str(each) for each in (param and param.name, ctx and ctx.command.name))
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


def _check_period(value: str, *, name: str, owner: str) -> None:
    """Check a day, an hour or a minute."""
    try:
        pd.Period(value)
    except (ValueError, TypeError) as error:
        raise ValueError(invalid(name, owner, "a day such as '2008-05-18', an hour or a minute", value)) from error


def _check_crs(value: str, *, name: str, owner: str) -> None:
    """Check a CRS."""
    read_crs(value)


CRS = Checked(_check_crs)
JOBS = Checked(lambda value, *, name, owner: check_jobs(value, owner=owner), base=click.INT)
MEMORY = Checked(lambda value, *, name, owner: check_memory(value, owner=owner))
PERIOD = Checked(_check_period)
SPEED = Checked(partial(check_number, unit="metres per second"), base=click.FLOAT)
TEXT = Checked(_check_text)
ZONE = Checked(check_zone)
