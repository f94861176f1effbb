"""Drop records that cannot be reached at a given speed."""

import numpy as np

from promesse_geo import threads
from promesse_geo.kernels import jumps
from promesse_geo.messages import counted, warn
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Data, Traces, map_traces
from promesse_geo.validation import check_number


def drop_jumps(data: Data, *, max_speed: float = 50.0, user: Name = ..., time: Name = ...) -> Data:
    """Remove records that nobody could have reached from the last kept one.

    A record goes when it is farther than `max_speed` times the time passed. When more than half of a trace would go,
    its first record is the outlier: it goes, and the rest starts again. Not in the paper; use it first, on true times.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The data.
    max_speed : float
        Metres per second.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        The kind that came; one warning says how many records were removed.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1, as_traces=True)
    >>> pg.drop_jumps(city, max_speed=1000).records == city.records
    True
    """
    speed = check_number(max_speed, name="max_speed", owner="drop_jumps", unit="metres per second")

    def work(traces: Traces) -> Traces:
        space = traces.space
        way = speed / space.scale
        keep = np.empty(traces.records, bool)
        threads.run(
            lambda first, last: jumps.reachable(
                traces.points, traces.times, traces.offsets, space.curvature, way, first, last, keep
            ),
            threads.fair(traces.counts),
        )
        removed = len(keep) - int(keep.sum())
        if removed:
            warn(f"drop_jumps removed {removed:,} of {counted(len(keep), 'record')} that need more than {speed:g} m/s.")
        return traces.select(keep)

    return map_traces(data, work, user=user, time=time, selects=True)
