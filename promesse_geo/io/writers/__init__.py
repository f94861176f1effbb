"""Writers of files: one module per kind, chosen by the extension in `output.WRITERS`."""

from promesse_geo.io.writers.output import WRITERS, check_output, write, write_pois

__all__ = ["WRITERS", "check_output", "write", "write_pois"]
