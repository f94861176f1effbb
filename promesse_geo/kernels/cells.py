"""Cells that traces visit, as numbers."""

from promesse_geo.kernels import loop


@loop("cells, counts")
def sort_distinct(cells, offsets, first, last, counts):
    """Sort the distinct cells of each trace to the front of its rows.

    Parameters
    ----------
    cells : int64, shape (records,)
        The cell of each record; changed.
    offsets : int64, shape (traces + 1,)
        First record of each trace, and the number of records.
    first, last : int
        Sorts the traces first … last − 1.
    counts : int64, shape (traces,)
        Output: number of distinct cells.
    """
    for trace in range(first, last):
        begin = offsets[trace]
        own = cells[begin : offsets[trace + 1]]
        own.sort()
        number = 0
        for i in range(len(own)):
            if i == 0 or own[i] != own[i - 1]:
                cells[begin + number] = own[i]
                number += 1
        counts[trace] = number


@loop("shared")
def count_shared(cells, offsets, others, other_offsets, originals, first, last, shared):
    """Count the cells that each protected trace has in common with its original.

    Parameters
    ----------
    cells, others : int64, shapes (n,) and (m,)
        Distinct cells of the original and of the protected traces, ascending, trace by trace.
    offsets, other_offsets : int64, shapes (originals + 1,) and (traces + 1,)
        First cell of each trace, and the number of cells.
    originals : int64, shape (traces,)
        The original of each protected trace; each at most once.
    first, last : int
        Counts for the protected traces first … last − 1.
    shared : int64, shape (originals,)
        Output: number of common cells.
    """
    for trace in range(first, last):
        original = originals[trace]
        row = offsets[original]
        other = other_offsets[trace]
        number = 0
        while row < offsets[original + 1] and other < other_offsets[trace + 1]:
            if cells[row] < others[other]:
                row += 1
            elif cells[row] > others[other]:
                other += 1
            else:
                number += 1
                row += 1
                other += 1
        shared[original] = number
