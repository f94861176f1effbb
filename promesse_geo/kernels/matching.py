"""Which original point each found point retrieves.

Bound: every pair of an original and a found point of one trace, once.
"""

import math

from promesse_geo.kernels import loop


@loop
def retrieve(points, offsets, found, found_offsets, originals, limit, first, last, nearest):
    """For the found points of traces first … last − 1: the row of the nearest original point; −1 beyond the limit.

    Distances are squared, as is the limit, which belongs to it; of equally near points the first is taken.
    """
    for trace in range(first, last):
        own = originals[trace]
        for i in range(found_offsets[trace], found_offsets[trace + 1]):
            best = math.inf
            nearest[i] = -1
            for j in range(offsets[own], offsets[own + 1]):
                square = 0.0
                for axis in range(points.shape[1]):
                    step = points[j, axis] - found[i, axis]
                    square += step * step
                if square < best and square <= limit:
                    best = square
                    nearest[i] = j
