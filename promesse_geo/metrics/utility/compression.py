"""How much data there is after protection, compared with before."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from promesse_geo.metrics.base import Metric
from promesse_geo.traces.pairs import Pairs


@dataclass(frozen=True)
class Compression(Metric):
    """Records in the protected data for each record in the original (paper, section V-D, Table VI).

    The detail has one row per original trace: how many records it has in the original and in the protected data (0
    where the mechanism dropped it), and their ratio. The value is that of the whole data set, in percent.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1)
    >>> metric = pg.Compression()
    >>> metric.measure(city, city)
    100.0
    """

    unit: ClassVar[str] = "%"

    def _detail(self, pairs: Pairs, index: None) -> pd.DataFrame:
        original = pairs.original.counts
        protected = np.zeros_like(original)
        protected[pairs.originals] = pairs.protected.counts
        return pd.DataFrame(
            {"original": original, "protected": protected, "compression": protected / original},
            index=pairs.original.users.rename("user"),
        )

    def value(self, detail: pd.DataFrame) -> float:
        """Return the protected records as a percentage of the original ones; NaN where there are none."""
        original = int(detail.original.sum())
        return 100 * int(detail.protected.sum()) / original if original else math.nan
