"""Speed smoothing: samples at a constant distance along each trace.

One walk serves the sphere (curvature 1, unit vectors) and the plane (curvature 0, metres): with κ the curvature,
a segment a → b is left with v = d + κ|d|²/2 · a (d = b − a), and every formula of the sphere becomes that of the plane
at κ = 0. "At least ε away" compares squared chords, and tables say where m steps lead: no trigonometry but where more
samples lie on a segment than the tables hold.

Bound: for each output sample one square root and two divisions in a chain, and the stores.
"""

import math

import numpy as np

from promesse_geo.kernels import inner, loop
from promesse_geo.kernels.geometry import arc, direction, read, squared


@inner
def _write(points, i, x, y, z):
    points[i, 0] = x
    points[i, 1] = y
    if points.shape[1] == 3:
        points[i, 2] = z


@inner
def _crossing(sx, sy, sz, ax, ay, az, vx, vy, vz, length, curvature, chord2):
    """σ and 1/(1 + τ²) of the first point p of the segment whose squared chord to s is chord2; a lies inside that ball.

    (A + C) τ² − 2 B τ + (C − A) = 0 for τ = tan(φ/2), φ the angle from a; here σ = τ/|v|, so that one square root
    and two divisions do, one of which need not wait for the root. p = a + 2σ/(1 + τ²) · (v − κσ|v|² a).
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


@inner
def _time_at(points, times, k, x, y, z, curvature):
    """Return the time at which the point (x, y, z) of the segment from record k to k + 1 is passed, to ±1 ns."""
    ax, ay, az = read(points, k)
    bx, by, bz = read(points, k + 1)
    whole = arc(squared(ax, ay, az, bx, by, bz), curvature)
    part = arc(squared(ax, ay, az, x, y, z), curvature)
    span = times[k + 1] - times[k]
    passed = np.int64(np.rint(part / whole * span)) if whole > 0.0 else span
    return times[k] + min(max(passed, 0), span)


@inner
def _steps(sx, sy, sz, bx, by, bz, rest2, curvature, epsilon, tolerance):
    """How many steps of ε fit between two points, in general."""
    rest = arc(rest2, curvature)
    if curvature * rest2 > 2.0:
        opposite = math.sqrt(squared(-sx, -sy, -sz, bx, by, bz))  # by itself: else numba on Python 3.12 finds no type
        rest = 2.0 * math.atan2(math.sqrt(rest2), opposite)
    return int((rest / epsilon) * (1.0 + 1e-9) + tolerance), rest


@inner
def _walk(points, times, first, last, out, start, rule, cosines, sines, nears):
    """Place the samples of records first … last − 1 into out[start:], but the first one.

    rule = (polyline, curvature, chord², ε, tolerance), in kernel units; the tables hold cosine and sine of m steps,
    and their squared chord less the tolerance. Returns the number of samples, and the times of the second and of the
    last but one.
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


@loop
def bound_samples(points, offsets, curvature, epsilon, first, last, bounds):
    """Write an upper bound of the samples of traces first … last − 1: path length / ε + 2.

    A step counts as the sum of its differences along the axes: at most √3 times too long, without a root.

    Parameters
    ----------
    points : float64, shape (records, 3) or (records, 2)
        Unit vectors, or metres in the plane.
    offsets : int64, shape (traces + 1,)
        The first record of each trace, and the number of records.
    curvature : float
        1 on the sphere, 0 in the plane.
    epsilon : float
        Distance of samples, in radians on the sphere and metres in the plane.
    first, last : int
        The traces to bound.
    bounds : float64, shape (traces,)
        Written: the bounds.
    """
    for i in range(first, last):
        path = 0.0
        for k in range(offsets[i] + 1, offsets[i + 1]):
            ax, ay, az = read(points, k - 1)
            bx, by, bz = read(points, k)
            step = abs(bx - ax) + abs(by - ay) + abs(bz - az)
            path += step * (1.0 + curvature * (step * step) / 6.0)  # no arc is longer: 2 · 5/3 > π at the antipode
        bounds[i] = path / epsilon * (1.0 + 1e-5) + 2.0  # the tolerance makes steps shorter by 1e-6 at most


@loop
def sample_traces(
    points, times, offsets, bounds, first, last, cursor, upward, out, rule, tables, least, final, kept, begin, end
):
    """Sample traces first … last − 1, without their first point and the `final` last ones.

    Parameters
    ----------
    points, offsets, bounds
        As for `bound_samples`.
    times : int64, shape (records,)
        Nanoseconds, ascending in each trace.
    first, last : int
        The traces to sample.
    cursor : int
        The first row to write if upward, else the row after the last.
    upward : bool
        Whether traces are written from the cursor on, or from the last trace down to it.
    out : float64, shape (rows, 3) or (rows, 2)
        Written: the samples.
    rule : tuple
        (polyline, curvature, chord², ε, tolerance): whether samples lie on the polyline, lengths in kernel units.
    tables : tuple of three float64 arrays, shape (steps,)
        Cosine and sine of m steps, and their squared chord less the tolerance.
    least : int
        Traces with fewer samples left are dropped.
    final : int
        How many of the last samples are removed.
    kept, begin, end : int64, shape (traces,)
        Written: the number of samples left of each trace, and the times of the first and the last, in nanoseconds.
    """
    for number in range(first, last):
        i = number if upward else first + last - 1 - number
        start = cursor if upward else cursor - int(bounds[i])
        samples, second, latest = _walk(points, times, offsets[i], offsets[i + 1], out, start, rule, *tables)
        kept[i] = 0
        if samples - 2 >= least:
            kept[i] = samples - 1 - final
            begin[i] = second
            end[i] = latest
            if upward:
                cursor += kept[i]
            else:
                for k in range(kept[i] - 1, -1, -1):
                    cursor -= 1
                    x, y, z = read(out, start + k)
                    _write(out, cursor, x, y, z)


@loop
def space_times(offsets, begin, end, first, last, times):
    """Write the times of traces first … last − 1: from begin to end in equal steps, to the nanosecond.

    That is begin + ⌊j · (end − begin)/(n − 1)⌋, or with q, r = divmod(end − begin, n − 1), begin + j · q +
    ⌊j · r/(n − 1)⌋; the last term counts how often the remainders j · r have passed n − 1, in integers, which saves a
    division for each time.
    """
    for i in range(first, last):
        gaps = offsets[i + 1] - offsets[i] - 1
        quotient = (end[i] - begin[i]) // max(gaps, 1)
        remainder = (end[i] - begin[i]) - quotient * gaps
        whole = begin[i]
        rest = 0
        for j in range(offsets[i], offsets[i + 1]):
            times[j] = whole
            rest += remainder
            carry = rest >= gaps
            whole += quotient + carry
            rest -= gaps * carry
