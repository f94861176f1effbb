"""Where a path comes back to where it was a moment ago.

Bound: one or two distances for each record.
"""

from promesse_geo.kernels import loop


@loop
def mark(points, offsets, limit, steps, first, last, marks):
    """Mark the records of traces first … last − 1 inside of stretches whose ends are near each other.

    Stretches have 2 to `steps` steps; near are squared distances up to the limit, in kernel units.
    """
    for trace in range(first, last):
        end = offsets[trace + 1]
        for i in range(offsets[trace], end):
            marks[i] = False
        for i in range(offsets[trace], end):
            for j in range(i + 2, min(i + steps + 1, end)):
                square = 0.0
                for axis in range(points.shape[1]):
                    square += (points[j, axis] - points[i, axis]) ** 2
                if square <= limit:
                    for inside in range(i + 1, j):
                        marks[inside] = True
