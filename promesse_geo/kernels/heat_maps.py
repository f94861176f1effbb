"""Distances between heat maps: shares of records per cell."""

import math

from promesse_geo.kernels import loop


@loop("distances")
def compare_heat_maps(cells, counts, offsets, known_cells, known_counts, known_offsets, first, last, distances):
    """Compute the Topsøe divergence between heat maps, Σ p ln(2p / (p + q)) + q ln(2q / (p + q)) with 0 · ln 0 = 0.

    A cell in one map alone gives its share times ln 2. Equal maps have the distance 0 exactly, maps without a common
    cell 2 ln 2.

    Parameters
    ----------
    cells, known_cells : int64, shapes (n,) and (m,)
        Distinct cells of each map, ascending, map by map.
    counts, known_counts : int64, shapes (n,) and (m,)
        Number of records in each cell.
    offsets, known_offsets : int64, shapes (maps + 1,) and (known maps + 1,)
        First cell of each map, and the number of cells.
    first, last : int
        Compares the maps first … last − 1 with all known ones.
    distances : float64, shape (maps, known maps)
        Output; infinite if a map is empty.
    """
    for i in range(first, last):
        total = 0
        for row in range(offsets[i], offsets[i + 1]):
            total += counts[row]
        for j in range(len(known_offsets) - 1):
            known_total = 0
            for row in range(known_offsets[j], known_offsets[j + 1]):
                known_total += known_counts[row]
            if total == 0 or known_total == 0:
                distances[i, j] = math.inf
                continue
            shared = 0
            known_shared = 0
            distance = 0.0
            row = offsets[i]
            other = known_offsets[j]
            while row < offsets[i + 1] and other < known_offsets[j + 1]:
                if cells[row] < known_cells[other]:
                    row += 1
                elif cells[row] > known_cells[other]:
                    other += 1
                else:
                    p = counts[row] / total
                    q = known_counts[other] / known_total
                    distance += p * math.log(2.0 * p / (p + q)) + q * math.log(2.0 * q / (p + q))
                    shared += counts[row]
                    known_shared += known_counts[other]
                    row += 1
                    other += 1
            alone = (total - shared) / total + (known_total - known_shared) / known_total
            distances[i, j] = distance + alone * math.log(2.0)
