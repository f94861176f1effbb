"""The command line `promesse-geo`."""

from promesse_geo.cli.commands import main

__all__ = ["main"]
