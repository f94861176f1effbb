"""The command zones, and the options of privacy zones and their secret, which publish has, too."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import geopandas as gpd

import promesse_geo as pg
from promesse_geo.cli import layout, options, values
from promesse_geo.cli.data_sets import data_set_options, protect_data_set, writes_data_set
from promesse_geo.cli.errors import expected_errors, usage_errors
from promesse_geo.io.atomic import check_target, write_text
from promesse_geo.publication.choices import check_secret

VARIABLE = "PROMESSE_GEO_SECRET"
"""Environment variable of the secret."""

_FILE = "FILE"
ZONES = options.shared_option(
    "--zones",
    "Points or polygons of zones, with a column user if each is of one user; found by default.",
    metavar=_FILE,
)
PLACES = options.shared_option(
    "--places", "Places to find for each user; 1 by default.", kind=values.Whole(min=1), metavar="NUMBER"
)
SECRET = options.shared_option(
    "--secret-file",
    f"Keep the secret of displacements in FILE (made if it does not exist), or in the variable {VARIABLE}.",
    metavar=_FILE,
)


def read_secret(path: str | None, *, dry_run: bool = False) -> str | None:
    """Return the secret of a file, which is made if it does not exist, or of the environment; None without any.

    It is never an option itself, which shells keep in their history. A dry run makes no file.
    """
    if path is None:
        text, source = os.environ.get(VARIABLE), f"the variable {VARIABLE}"
        if text is None:
            return None
    else:
        file, source = Path(path), click.format_filename(path)
        if not file.exists():
            check_target(file, force=False)
            if dry_run:
                layout.say(
                    f"A dry run makes no secret: {source} does not exist, so centres are displaced by a new key."
                )
                return secrets.token_hex(32)
            write_text(file, secrets.token_hex(32) + "\n", force=False, private=True)
            layout.say(f"A new secret is in {source}. Keep it, and pass it each time for the same people.")
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{source} is not text in UTF-8. Name the file of a secret.") from None
    try:
        return check_secret(text.strip())
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def read_zones(path: str | None) -> gpd.GeoDataFrame | None:
    """Return the points or polygons of the file of --zones; None without one."""
    return options.read_shapes(path, option="--zones", kinds="points or polygons")


def make_zones(choices: dict[str, Any], radius: float | None, offset: float | None) -> pg.PrivacyZones:
    """Return the mechanism that options specify, with the secret and the zones of files."""
    given = {"radius": radius, "offset": offset, "places": choices["places"]}
    secret = read_secret(choices["secret_file"], dry_run=choices.get("dry_run", False))
    given |= {"zones": read_zones(choices["zones"]), "seed": secret}
    return pg.PrivacyZones(**{name: value for name, value in given.items() if value is not None})


def _zone_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of zones to a command."""
    return options.with_options(command, (ZONES, PLACES, SECRET))


@layout.command(short_help="Remove privacy zones around homes or other places.")
@options.input_options
@options.output_argument
@click.option(
    "--radius", type=values.NUMBER, metavar="METRES", help="Radius of a zone; 500 by default, we recommend 700."
)
@click.option(
    "--offset",
    type=values.NUMBER,
    metavar="METRES",
    help="Greatest displacement of its centre; 400 by default, we recommend 600.",
)
@_zone_options
@data_set_options
@options.keep_users_option
@options.force_option
def zones(
    context: click.Context, output: str, radius: float | None, offset: float | None, keep_users: bool, force: bool
) -> None:
    """Remove the records of INPUT in zones around homes, and break traces there.

    By default a zone is found for each user, where most of the traces begin and end. Centres are displaced at random:
    keep one secret (--secret-file), or several publications of the same people average the displacements out.

    Pass --keep-users to go on with prepare and smooth; publish does all steps, and applies zones first.
    """
    with expected_errors():
        is_data_set = writes_data_set(context, output)
        if not is_data_set:
            options.check_target(context, output, force=force)
        with usage_errors():
            mechanism = make_zones(context.obj, radius, offset)
        if mechanism.is_random:
            layout.say("Centres are displaced by a new key. Keep a secret to publish again: --secret-file.")
        protect = protect_data_set if is_data_set else options.protect
        protect(context, mechanism, output=output, keep_users=keep_users, force=force)


COMMANDS = (zones,)
