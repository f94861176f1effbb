"""python -m promesse_geo: the same as promesse-geo."""

from promesse_geo.cli.commands import main

main(prog_name="promesse-geo")
