"""The command that draws: map."""

from pathlib import Path
from typing import Any

import click

import promesse_geo as pg
from promesse_geo.cli import layout, options, values
from promesse_geo.cli.errors import expected_errors
from promesse_geo.io.atomic import check_target, write_text
from promesse_geo.plot.inks import COLORS
from promesse_geo.plot.layers import KINDS, kind_of_map
from promesse_geo.plot.page import ENDINGS

_SUMMARIES = {
    "original": "a map with true locations, do not publish it",
    "protected": "a map with protected data only",
    "true": "a map with true locations outside of privacy zones, do not publish it",
    "unknown": "a map of a file that does not say whether its data are protected, as CSV and GPX cannot: pass --kind "
    "protected if they are, else do not publish the map",
}


@layout.command("map", short_help="Draw a map of original data, protected data, or both.")
@options.input_options
@click.argument("paths", metavar="[PROTECTED] OUTPUT", nargs=-1, required=True)
@click.option(
    "--users",
    metavar="NAME",
    multiple=True,
    help="User to draw, with all parts; repeat it for several. All by default.",
)
@click.option(
    "--period",
    type=values.PERIOD,
    metavar="TIME",
    help="Day, hour or minute to draw, such as 2008-05-18 or 2008-05-18T09.",
)
@click.option("--pair", is_flag=True, help="Draw INPUT and PROTECTED side by side.")
@click.option("--slider", is_flag=True, help="Add a time slider.")
@click.option("--color", type=click.Choice(COLORS), default="data", show_default=True, help="What colours show.")
@click.option(
    "--background", type=values.FILE, metavar="FILE", help="Lines or polygons to draw below the data, such as streets."
)
@click.option("--no-pois", is_flag=True, help="Draw no points of interest.")
@click.option(
    "--points",
    type=values.Whole(min=2),
    metavar="NUMBER",
    default=20_000,
    show_default=True,
    help="Maximum records per layer, besides the ends of traces.",
)
@click.option(
    "--tiles",
    type=values.TILES,
    metavar="NAME",
    help="Tiles such as OpenStreetMap, whose server learns what is viewed.",
)
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    help="What INPUT is if it is drawn alone; by default protected if its metadata say so, else unknown.",
)
@options.force_option
def draw_map(
    context: click.Context,
    paths: tuple[str, ...],
    users: tuple[str, ...],
    period: str | None,
    pair: bool,
    slider: bool,
    color: str,
    background: str | None,
    no_pois: bool,
    points: int,
    tiles: str | None,
    kind: str | None,
    force: bool,
) -> None:
    """Draw INPUT, and PROTECTED if given, on a map: OUTPUT is an .html page that needs no other files.

    Do not publish a map with original data. A map of protected data alone has no user names and no points of interest:
    publish it if you publish the data. GeoParquet, GeoPackage and FlatGeobuf files of protected data say so. Of other
    files, such as CSV, it is not known, and the map says that: pass --kind protected if they are. The output of zones
    has true locations: do not publish its map, either.
    """
    *before, output = paths
    if len(before) > 1:
        raise click.UsageError("Specify INPUT, PROTECTED if there is such data, and OUTPUT: no more than three paths.")
    protected = before[0] if before else None
    if pair and (protected is None or slider):
        raise click.UsageError("--pair needs PROTECTED, and has no --slider.")
    if kind is not None and protected is not None:
        raise click.UsageError("--kind is for INPUT drawn alone. Omit it, or omit PROTECTED.")
    if Path(output).suffix.lower() not in ENDINGS:
        raise click.UsageError(f"OUTPUT must be a file that ends in {' or '.join(ENDINGS)}. Got {output!r} instead.")
    context.params["protected"] = protected
    options.check_not_input(output, {"INPUT": context.obj["source"], "PROTECTED": protected})
    with expected_errors():
        check_target(output, force=force)
        shapes = options.read_shapes(background, option="--background")
        if protected is None:
            data, after = options.read(context), None
        else:
            data, after = options.read_both(context, protected)
        chosen: dict[str, Any] = {"users": list(users) or None, "period": period, "tiles": tiles, "points": points}
        chosen |= {"color": color, "background": shapes}
        chosen |= {"attack": None} if no_pois else {}
        if after is not None and pair:
            page: Any = pg.draw_map_pair(data, after, **chosen)
        else:
            page = pg.draw_map(data, after, slider=slider, kind=kind, **chosen).get_root()
        shown = kind_of_map(data, after, kind=kind)
        write_text(Path(output), page.render(), force=force, private=shown != "protected")
        click.echo(f"{click.format_filename(output)}: {_SUMMARIES[shown]}")


COMMANDS = (draw_map,)
