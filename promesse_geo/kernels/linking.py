"""The part that begins nearest to where another part ends."""

import math

from promesse_geo.kernels import loop
from promesse_geo.kernels.geometry import square_between


@loop("counts, right, nearest, linked")
def find_next(firsts, lasts, owners, order, first, last, begin, end, counts, right, nearest, linked):
    """Find for each part the nearest beginning among the parts that begin in a window after its end.

    Parameters
    ----------
    firsts, lasts : float64, shape (parts, 3) or (parts, 2)
        First and last point of each part: unit vectors on the sphere, or metres in the plane.
    owners : int64, shape (parts,)
        Owner of each part.
    order : int64, shape (parts,)
        Parts in the order of their beginnings.
    first, last : int64, shape (parts,)
        The candidates of a part are the rows first … last − 1 of `order`, without the part itself.
    begin, end : int
        Searches for the parts begin … end − 1.
    counts, right : int64, shape (parts,)
        Output: number of candidates, and of those of the same owner.
    nearest : float64, shape (parts,)
        Output: squared chord to the nearest candidate; infinite without candidates.
    linked : float64, shape (parts,)
        Output: share of the nearest candidates that are of the same owner.
    """
    for part in range(begin, end):
        counts[part] = right[part] = 0
        nearest[part] = math.inf
        ties = 0
        true = 0
        for row in range(first[part], last[part]):
            other = order[row]
            if other == part:
                continue
            is_own = owners[other] == owners[part]
            counts[part] += 1
            right[part] += is_own
            square = square_between(lasts, part, firsts, other)
            if square < nearest[part]:
                nearest[part] = square
                ties = 0
                true = 0
            if square == nearest[part]:
                ties += 1
                true += is_own
        linked[part] = true / ties if ties > 0 else 0.0
