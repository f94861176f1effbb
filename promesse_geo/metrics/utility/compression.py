"""Records of protected data per record of the original."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from promesse_geo.metrics.base import Metric
from promesse_geo.traces.pairs import Pairs


@dataclass(frozen=True)
class Compression(Metric):
    """Records of the protected data per record of the original (paper, section V-D, Table VI).

    The detail has one row per original trace: the number of `original` and `protected` records (0 if the mechanism
    dropped the trace), and their ratio `compression`. The value is the ratio of the data sets, in percent.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1)
    >>> metric = pg.Compression()
    >>> metric.measure(city, city)
    100.0
    """

    unit: ClassVar[str] = "%"
    bounds: ClassVar[tuple[float, float]] = (0, np.inf)
    meaning: ClassVar[str] = "records published for 100 original ones"
    is_per_user: ClassVar[bool] = True

    def _detail(self, pairs: Pairs, index: None) -> pd.DataFrame:
        original = pairs.original.counts
        protected = np.zeros_like(original)
        protected[pairs.originals] = pairs.protected.counts
        return pd.DataFrame(
            {"original": original, "protected": protected, "compression": protected / original},
            index=pairs.original.users.rename("user"),
        )

    def value(self, detail: pd.DataFrame) -> float:
        """Return the protected records as a percentage of the original ones; NaN without any."""
        original = int(detail.original.sum())
        return 100 * int(detail.protected.sum()) / original if original else math.nan
