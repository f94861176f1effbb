"""Drop records that cannot be reached at a given speed."""

import numpy as np

from promesse_geo import threads
from promesse_geo.kernels import jumps
from promesse_geo.messages import counted, warn
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Data, Traces, map_traces
from promesse_geo.validation import check_number


def drop_jumps(data: Data, *, max_speed: float = 50.0, user: Name = ..., time: Name = ...) -> Data:
    """Drop records that cannot be reached from the last kept one.

    A record is dropped if its distance is more than `max_speed` times the time passed. If more than half of a trace
    would be dropped, its first record is taken for the outlier: it is dropped, and the rest is done anew. This step
    is not in the paper. Apply it first, to the true times.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The data.
    max_speed : float
        Greatest speed in metres per second.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        Of the type of `data`; one warning counts the dropped records.

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
        step = speed / space.scale
        keep = np.empty(traces.records, bool)
        threads.run(
            lambda first, last: jumps.mark_reachable(
                traces.points, traces.times, traces.offsets, space.curvature, step, first, last, keep
            ),
            threads.fair(traces.counts),
        )
        dropped = len(keep) - int(keep.sum())
        if dropped:
            warn(f"drop_jumps dropped {dropped:,} of {counted(len(keep), 'record')} that need more than {speed:g} m/s.")
        return traces.select(keep)

    return map_traces(data, work, user=user, time=time, selects=True)
