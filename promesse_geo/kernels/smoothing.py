"""Speed smoothing: samples at a constant distance ε along each trace.

The same code serves the sphere (curvature κ = 1, unit vectors) and the plane (κ = 0, metres). A segment leaves a
towards b in the direction v = d + κ|d|²/2 · a with d = b − a; at κ = 0 every formula of the sphere becomes that of the
plane. Distances of at least ε are detected by squared chords, and several samples on a segment are placed with tables
of the cosine and sine of m steps. Trigonometric functions are called only if a segment has
more samples than the tables hold.
"""

import math

import numpy as np

from promesse_geo.kernels import inner, loop
from promesse_geo.kernels.geometry import arc, direction, read, squared


@inner("points")
def _write(points, i, x, y, z):
    """Write a point; z is ignored in the plane."""
    points[i, 0] = x
    points[i, 1] = y
    if points.shape[1] == 3:
        points[i, 2] = z


@inner()
def _crossing(sx, sy, sz, ax, ay, az, vx, vy, vz, length, curvature, chord2):
    """Return σ and 1/(1 + κτ²) of the first point p on a segment whose squared chord to s is chord2; a is nearer to s.

    With φ the angle from a to p, τ = tan(φ/2) and σ = τ/|v|: p = a + 2σ/(1 + κτ²) · (v − κσ|v|² a), where σ solves
    P σ² + 2 (v·w) σ + M = 0 with w = a − s, P = (2 − κ(|w|² + chord2)/2) |v|² and M = (|w|² − chord2)/2. This needs
    only one square root and two divisions.
    """
    wx = ax - sx
    wy = ay - sy
    wz = az - sz
    w2 = wx * wx + wy * wy + wz * wz
    vw = vx * wx + vy * wy + vz * wz
    plus = (2.0 - 0.5 * curvature * (w2 + chord2)) * length
    minus = 0.5 * (w2 - chord2)
    sigma = (math.sqrt(max(vw * vw - plus * minus, 0.0)) - vw) * (1.0 / plus)
    return sigma, 1.0 / (1.0 + curvature * sigma * sigma * length)


@inner()
def _time_at(points, times, k, x, y, z, curvature):
    """Return the time at which the segment from record k to k + 1 passes the point (x, y, z), to ±1 ns."""
    ax, ay, az = read(points, k)
    bx, by, bz = read(points, k + 1)
    length = arc(squared(ax, ay, az, bx, by, bz), curvature)
    distance = arc(squared(ax, ay, az, x, y, z), curvature)
    span = times[k + 1] - times[k]
    passed = np.int64(np.rint(distance / length * span)) if length > 0.0 else span
    return times[k] + min(max(passed, 0), span)


@inner()
def _steps(sx, sy, sz, bx, by, bz, rest2, curvature, epsilon, tolerance):
    """Return how many steps of ε fit between two points, and the distance between them."""
    rest = arc(rest2, curvature)
    if curvature * rest2 > 2.0:
        opposite = math.sqrt(squared(-sx, -sy, -sz, bx, by, bz))  # separate: else numba on Python 3.12 finds no type
        rest = 2.0 * math.atan2(math.sqrt(rest2), opposite)
    return int((rest / epsilon) * (1.0 + 1e-9) + tolerance), rest


@inner("out, passed")
def _walk(points, times, first, last, out, passed, start, rule, cosines, sines, nears):
    """Write the samples of records first … last − 1, except the first one, from row `start` of `out` on.

    Unless `passed` is None, write there the first record of each sample's segment. Returns the number of samples, and
    the times of the second and of the last but one.
    """
    polyline, curvature, chord2, epsilon, tolerance = rule
    near2 = nears[1]
    table = nears.shape[0]
    sx, sy, sz = read(points, first)
    ax, ay, az = sx, sy, sz
    placed = 0
    opening = first  # segment of the second sample
    latest = first  # of the last
    before = first  # of the last but one
    for k in range(first + 1, last):
        bx, by, bz = read(points, k)
        rest2 = squared(sx, sy, sz, bx, by, bz)
        if rest2 >= near2:
            if placed == 0:
                opening = k - 1
            if polyline:
                vx, vy, vz, length = direction(ax, ay, az, bx, by, bz, curvature)
                if rest2 <= chord2:  # within the tolerance
                    sx, sy, sz = bx, by, bz
                    rest2 = 0.0
                else:
                    inverse = 1.0 / math.sqrt(length)
                    sigma, shrink = _crossing(sx, sy, sz, ax, ay, az, vx, vy, vz, length, curvature, chord2)
                    step = curvature * sigma * length
                    factor = 2.0 * sigma * shrink
                    sx = ax + factor * (vx - step * ax)
                    sy = ay + factor * (vy - step * ay)
                    sz = az + factor * (vz - step * az)
                    rest2 = squared(sx, sy, sz, bx, by, bz)
                    # unit tangent at p: (v/|v|) cos φ − κ a sin φ
                    cosine = (1.0 - sigma * step) * shrink * inverse
                    sine = curvature * factor * length * inverse
                    vx = vx * cosine - ax * sine
                    vy = vy * cosine - ay * sine
                    vz = vz * cosine - az * sine
                _write(out, start + placed, sx, sy, sz)
                if passed is not None:
                    passed[start + placed] = k - 1
                placed += 1
                before = latest
                latest = k - 1
            else:
                vx, vy, vz, length = direction(sx, sy, sz, bx, by, bz, curvature)
                inverse = 1.0 / math.sqrt(length)
                vx *= inverse
                vy *= inverse
                vz *= inverse
            m = 0
            beyond = False
            while m + 1 < table and rest2 >= nears[m + 1]:
                m += 1
                x = sx * cosines[m] + vx * sines[m]
                y = sy * cosines[m] + vy * sines[m]
                z = sz * cosines[m] + vz * sines[m]
                _write(out, start + placed, x, y, z)
                if passed is not None:
                    passed[start + placed] = k - 1
                placed += 1
            if m + 1 == table:
                count, rest = _steps(sx, sy, sz, bx, by, bz, rest2, curvature, epsilon, tolerance)
                beyond = count * epsilon > rest
                for m in range(table, count + 1):
                    cosine = math.cos(m * epsilon) if curvature != 0.0 else 1.0
                    sine = math.sin(m * epsilon) if curvature != 0.0 else m * epsilon
                    x = sx * cosine + vx * sine
                    y = sy * cosine + vy * sine
                    z = sz * cosine + vz * sine
                    _write(out, start + placed, x, y, z)
                    if passed is not None:
                        passed[start + placed] = k - 1
                    placed += 1
            if m > 0:
                if beyond or (m < table and squared(sx, sy, sz, x, y, z) > rest2):  # by no more than the tolerance
                    x, y, z = bx, by, bz
                    _write(out, start + placed - 1, x, y, z)
                before = latest if m == 1 else k - 1
                latest = k - 1
                sx, sy, sz = x, y, z
        ax, ay, az = bx, by, bz
    if placed == 0:
        return 1, times[first], times[first]
    if not polyline:
        return placed + 1, times[opening + 1], times[(before if placed > 1 else opening) + 1]
    x, y, z = read(out, start)
    second = _time_at(points, times, opening, x, y, z, curvature)
    if placed == 1:
        return 2, second, second
    x, y, z = read(out, start + placed - 2)
    return placed + 1, second, _time_at(points, times, before, x, y, z, curvature)


@loop("bounds")
def bound_samples(points, offsets, curvature, epsilon, first, last, bounds):
    """Compute an upper bound of the number of samples of each trace: path length/ε + 2.

    A step counts as the sum of its differences along the axes, which needs no square root and is at most √3 times too
    long.

    Parameters
    ----------
    points : float64, shape (records, 3) or (records, 2)
        Unit vectors, or metres in the plane.
    offsets : int64, shape (traces + 1,)
        First record of each trace, and the number of records.
    curvature : float
        1 on the sphere, 0 in the plane.
    epsilon : float
        Distance ε between samples, in radians on the sphere or metres in the plane.
    first, last : int
        Computes the bounds of the traces first … last − 1.
    bounds : float64, shape (traces,)
        Output: number of samples.
    """
    for i in range(first, last):
        path = 0.0
        for k in range(offsets[i] + 1, offsets[i + 1]):
            ax, ay, az = read(points, k - 1)
            bx, by, bz = read(points, k)
            step = abs(bx - ax) + abs(by - ay) + abs(bz - az)
            path += step * (1.0 + curvature * (step * step) / 6.0)  # no arc is longer: 2 · 5/3 > π at the antipode
        bounds[i] = path / epsilon * (1.0 + 1e-5) + 2.0  # the tolerance makes steps shorter by 1e-6 at most


@inner()
def _times_of(points, times, out, passed, first, last, rule):
    """Return the times at which the samples in rows first and last of `out` are passed."""
    polyline, curvature = rule[0], rule[1]
    if not polyline:
        return times[passed[first] + 1], times[passed[last] + 1]
    x, y, z = read(out, first)
    begin = _time_at(points, times, passed[first], x, y, z, curvature)
    x, y, z = read(out, last)
    return begin, _time_at(points, times, passed[last], x, y, z, curvature)


@loop("out, cuts, kept, begin, end")
def sample_traces(
    points, times, offsets, bounds, first, last, cursor, upward, out, cuts, rule, tables, least, final, kept, begin, end
):
    """Sample traces at a constant distance, and drop the first sample and the `final` last ones of each.

    Parameters
    ----------
    points : float64, shape (records, 3) or (records, 2)
        Unit vectors, or metres in the plane.
    times : int64, shape (records,)
        Nanoseconds, ascending in each trace.
    offsets : int64, shape (traces + 1,)
        First record of each trace, and the number of records.
    bounds : float64, shape (traces,)
        Upper bound of the number of samples of each trace; see `bound_samples`.
    first, last : int
        Samples the traces first … last − 1.
    cursor : int
        First row to write if `upward`, else the row after the last.
    upward : bool
        Whether to write the traces in ascending order from `cursor` on, or in descending order up to it.
    out : float64, shape (rows, 3) or (rows, 2)
        Output: samples, like `points`.
    cuts : None, or tuple of two int64 arrays, shapes (traces, 2) and (rows,)
        How many more samples to drop at the start and at the end of each trace; and a buffer for `out`.
    rule : tuple
        (polyline, curvature, chord², ε, tolerance): whether samples lie on the polyline (else each is ε away from the
        last one towards the first record that is at least ε away), 1 on the sphere or 0 in the plane, the squared
        chord of ε, ε in radians or metres, and the tolerance as a share of ε.
    tables : tuple of three float64 arrays, shape (steps,)
        Cosine and sine of m steps of ε (1 and m ε in the plane), and their squared chords less the tolerance.
    least : int
        Traces with fewer remaining samples are dropped.
    final : int
        Number of last samples to drop: 1, or 0 without cuts.
    kept, begin, end : int64, shape (traces,)
        Output: number of remaining samples of each trace, and the times of the first and the last one in nanoseconds;
        with final = 0, of the last but one.
    """
    for number in range(first, last):
        i = number if upward else first + last - 1 - number
        start = cursor if upward else cursor - int(bounds[i])
        head = 0
        tail = 0
        if cuts is None:
            samples, second, latest = _walk(points, times, offsets[i], offsets[i + 1], out, None, start, rule, *tables)
        else:
            numbers, passed = cuts
            samples, second, latest = _walk(
                points, times, offsets[i], offsets[i + 1], out, passed, start, rule, *tables
            )
            head = numbers[i, 0]
            tail = numbers[i, 1]
        kept[i] = 0
        if samples - 2 - head - tail >= least:
            kept[i] = samples - 1 - final - head - tail
            begin[i] = second
            end[i] = latest
            if cuts is not None:
                begin[i], end[i] = _times_of(
                    points, times, out, cuts[1], start + head, start + head + kept[i] - 1, rule
                )
            if upward:
                if head > 0:
                    for k in range(kept[i]):
                        x, y, z = read(out, start + head + k)
                        _write(out, start + k, x, y, z)
                cursor += kept[i]
            else:
                for k in range(kept[i] - 1, -1, -1):
                    cursor -= 1
                    x, y, z = read(out, start + head + k)
                    _write(out, cursor, x, y, z)


@loop("times")
def space_times(offsets, begin, end, first, last, times):
    """Compute times in equal steps from the start to the end of each trace: begin + ⌊j (end − begin)/(n − 1)⌋.

    With q, r = divmod(end − begin, n − 1) this is begin + j q + ⌊j r/(n − 1)⌋. The last term is the number of times
    that the sum of the remainders r has passed n − 1, which saves a division for each time.

    Parameters
    ----------
    offsets : int64, shape (traces + 1,)
        First record of each trace, and the number of records.
    begin, end : int64, shape (traces,)
        First and last time of each trace, in nanoseconds.
    first, last : int
        Computes the times of the traces first … last − 1.
    times : int64, shape (records,)
        Output: nanoseconds.
    """
    for i in range(first, last):
        gaps = offsets[i + 1] - offsets[i] - 1
        quotient = (end[i] - begin[i]) // max(gaps, 1)
        remainder = (end[i] - begin[i]) - quotient * gaps
        time = begin[i]
        rest = 0
        for j in range(offsets[i], offsets[i + 1]):
            times[j] = time
            rest += remainder
            carry = rest >= gaps
            time += quotient + carry
            rest -= gaps * carry
