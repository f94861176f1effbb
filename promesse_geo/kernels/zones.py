"""Segments of traces that come near the centres of zones.

Consecutive records lie in blocks with boxes in space, so that only the segments of blocks near a zone are measured. On
the sphere an arc bulges out of its chord by at most a quarter of the squared chord, which is added to the box.
"""

import math

from promesse_geo.kernels import inner, loop
from promesse_geo.kernels.geometry import square_between
from promesse_geo.kernels.polyline import foot

BLOCK = 64
"""Records in a block, at most."""


@loop("boxes")
def bound_blocks(points, stops, blocks, curvature, first, last, boxes):
    """Compute boxes around the segments of blocks.

    Parameters
    ----------
    points : float64, shape (records, 3) or (records, 2)
        Unit vectors, or metres in the plane.
    stops : bool, shape (records,)
        Whether no segment leads from the record to the next one.
    blocks : int64, shape (blocks + 1,)
        First record of each block, and the number of records.
    curvature : float
        1 on the sphere, 0 in the plane.
    first, last : int
        Computes the boxes of the blocks first … last − 1.
    boxes : float64, shape (blocks, 2, 3) or (blocks, 2, 2)
        Output: least and greatest coordinates.
    """
    size = points.shape[1]
    for block in range(first, last):
        begin, end = blocks[block], blocks[block + 1]
        widest = 0.0
        for axis in range(size):
            boxes[block, 0, axis] = boxes[block, 1, axis] = points[begin, axis]
        for k in range(begin, end):
            following = k if stops[k] else k + 1
            widest = max(widest, square_between(points, k, points, following))
            for axis in range(size):
                for row in (k, following):
                    boxes[block, 0, axis] = min(boxes[block, 0, axis], points[row, axis])
                    boxes[block, 1, axis] = max(boxes[block, 1, axis], points[row, axis])
        bulge = 0.25 * curvature * widest
        for axis in range(size):
            boxes[block, 0, axis] -= bulge
            boxes[block, 1, axis] += bulge


@inner()
def _is_far(boxes, block, centres, zone, reach):
    """Whether a box is farther than `reach` from a centre along some axis."""
    for axis in range(centres.shape[1]):
        if centres[zone, axis] < boxes[block, 0, axis] - reach or centres[zone, axis] > boxes[block, 1, axis] + reach:
            return True
    return False


@loop("zones, records")
def find_near(points, stops, blocks, boxes, traces, offsets, own, common, centres, reaches, curvature, zones, records):
    """Find the records from which segments come as near to the centre of a zone as it reaches.

    Parameters
    ----------
    points, stops, blocks, boxes
        As for `bound_blocks`.
    traces : int64, shape (blocks,)
        The trace of each block.
    offsets : int64, shape (traces + 1,)
        First of the zones in `own` of each trace, and their number.
    own, common : int64, shapes (n,) and (m,)
        Numbers of the zones of each trace, and of those for all.
    centres : float64, shape (zones, 3) or (zones, 2)
        Centres, like `points`.
    reaches : float64, shape (zones,)
        Chord up to which a segment is near.
    curvature : float
        1 on the sphere, 0 in the plane.
    zones, records : int64, shape (pairs,)
        Output: zone, and first record of the segment (or a record without one). If they are too short, the rest is
        only counted.

    Returns
    -------
    int
        The number of pairs.
    """
    pairs = 0
    for block in range(len(traces)):
        trace = traces[block]
        count = offsets[trace + 1] - offsets[trace]
        for number in range(count + len(common)):
            zone = own[offsets[trace] + number] if number < count else common[number - count]
            reach = reaches[zone]
            if _is_far(boxes, block, centres, zone, reach):
                continue
            x = centres[zone, 0]
            y = centres[zone, 1]
            z = centres[zone, 2] if centres.shape[1] == 3 else 0.0
            for k in range(blocks[block], blocks[block + 1]):
                square = foot(x, y, z, points, k, stops, curvature)[0]
                if math.sqrt(square) <= reach:
                    if pairs < len(records):
                        zones[pairs] = zone
                        records[pairs] = k
                    pairs += 1
    return pairs
