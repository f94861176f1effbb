"""Speed smoothing: samples at a constant distance along each trace.

One walk serves the sphere (curvature 1, unit vectors) and the plane (curvature 0, metres): with κ the curvature,
a segment a → b is left with v = d + κ|d|²/2 · a (d = b − a), and every formula of the sphere becomes that of the plane
at κ = 0. "At least ε away" compares squared chords; no trigonometry but where more than one sample lies on a segment.

Bound: for each output sample one square root and two divisions in a chain, and the stores.
"""

import math

import numpy as np
from numba import njit, prange


@njit(cache=True)
def _read(points, i):
    return points[i, 0], points[i, 1], points[i, 2] if points.shape[1] == 3 else 0.0


@njit(cache=True)
def _write(points, i, x, y, z):
    points[i, 0] = x
    points[i, 1] = y
    if points.shape[1] == 3:
        points[i, 2] = z


@njit(cache=True)
def _squared(ax, ay, az, bx, by, bz):
    """Squared chord of two points."""
    x = bx - ax
    y = by - ay
    z = bz - az
    return x * x + y * y + z * z


@njit(cache=True)
def _leaving(ax, ay, az, bx, by, bz, curvature):
    """V along the segment at a, and |v|² as a sum: |d|²(1 − κ|d|²/4) cancels near antipodes, which any arc joins."""
    x = bx - ax
    y = by - ay
    z = bz - az
    square = x * x + y * y + z * z
    half = 0.5 * curvature * square
    x += half * ax
    y += half * ay
    z += half * az
    length = x * x + y * y + z * z
    if curvature != 0.0 and length < 1e-24 * square:
        if abs(az) < 0.9:
            return -ax * az, -ay * az, 1.0 - az * az, 1.0 - az * az
        return 1.0 - ax * ax, -ax * ay, -ax * az, 1.0 - ax * ax
    return x, y, z, length


@njit(cache=True)
def _crossing(sx, sy, sz, ax, ay, az, vx, vy, vz, length, curvature, chord2):
    """σ and 1/(1 + τ²) of the first point p of the segment whose squared chord to s is chord2; a lies inside that ball.

    (A + C) τ² − 2 B τ + (C − A) = 0 for τ = tan(φ/2), φ the angle from a; here σ = τ/|v|, so that one square root
    and two divisions do. p = a + 2σ/(1 + τ²) · (v − κσ|v|² a).
    """
    wx = ax - sx
    wy = ay - sy
    wz = az - sz
    w2 = wx * wx + wy * wy + wz * wz
    vw = vx * wx + vy * wy + vz * wz
    plus = (2.0 - 0.5 * curvature * (w2 + chord2)) * length
    minus = 0.5 * (w2 - chord2)
    sigma = (math.sqrt(max(vw * vw - plus * minus, 0.0)) - vw) / plus
    return sigma, 1.0 / (1.0 + curvature * sigma * sigma * length)


@njit(cache=True)
def _arc(square, curvature):
    """Length of the arc over a squared chord (radians on the sphere, metres in the plane)."""
    chord = math.sqrt(square)
    if square * curvature < 1e-4:  # 2 arcsin(c/2) to the last digit
        return chord * (1.0 + curvature * square * (1.0 / 24.0 + square * (3.0 / 640.0)))
    return chord if curvature == 0.0 else 2.0 * math.asin(min(0.5 * chord, 1.0))


@njit(cache=True)
def _time_at(points, times, k, x, y, z, curvature):
    """Time at which the point (x, y, z) of the segment from record k to k + 1 is passed."""
    ax, ay, az = _read(points, k)
    bx, by, bz = _read(points, k + 1)
    whole = _arc(_squared(ax, ay, az, bx, by, bz), curvature)
    part = _arc(_squared(ax, ay, az, x, y, z), curvature)
    span = times[k + 1] - times[k]
    passed = np.int64(np.rint(part / whole * span)) if whole > 0.0 else span
    return times[k] + min(max(passed, 0), span)


@njit(cache=True)
def _walk(points, times, first, last, out, start, rule, cosines, sines):
    """Place the samples of records first … last − 1 into out[start:], but the first one.

    rule = (polyline, curvature, chord², chord² less the tolerance, chord² of two steps less it, ε, tolerance), in
    kernel units. Returns the number of samples, and the times of the second and of the last but one.
    """
    polyline, curvature, chord2, near2, two2, epsilon, tolerance = rule
    sx, sy, sz = _read(points, first)
    ax, ay, az = sx, sy, sz
    placed = 0
    second = times[first]
    latest = first  # segment of the last sample
    before = first  # segment of the last but one
    for k in range(first + 1, last):
        bx, by, bz = _read(points, k)
        rest2 = _squared(sx, sy, sz, bx, by, bz)
        if rest2 >= near2:
            if polyline:
                vx, vy, vz, length = _leaving(ax, ay, az, bx, by, bz, curvature)
                sigma, shrink = _crossing(sx, sy, sz, ax, ay, az, vx, vy, vz, length, curvature, chord2)
                step = curvature * sigma * length
                factor = 2.0 * sigma * shrink
                sx = ax + factor * (vx - step * ax)
                sy = ay + factor * (vy - step * ay)
                sz = az + factor * (vz - step * az)
                if _squared(ax, ay, az, sx, sy, sz) > _squared(ax, ay, az, bx, by, bz):
                    sx, sy, sz = bx, by, bz
                _write(out, start + placed, sx, sy, sz)
                placed += 1
                before = latest
                latest = k - 1
                if placed == 1:
                    second = _time_at(points, times, k - 1, sx, sy, sz, curvature)
                rest2 = _squared(sx, sy, sz, bx, by, bz)
                many = rest2 >= near2
                if many:  # unit tangent at p: (v/|v|) cos φ − κ a sin φ
                    root = math.sqrt(length)
                    cosine = (1.0 - sigma * step) * shrink / root
                    sine = curvature * factor * root
                    vx = vx * cosine - ax * sine
                    vy = vy * cosine - ay * sine
                    vz = vz * cosine - az * sine
            else:
                many = True
                vx, vy, vz, length = _leaving(sx, sy, sz, bx, by, bz, curvature)
                unit = 1.0 / math.sqrt(length)
                vx *= unit
                vy *= unit
                vz *= unit
            if many:
                count = 1
                if rest2 >= two2:
                    rest = _arc(rest2, curvature)
                    count = max(1, int((rest / epsilon) * (1.0 + 1e-9) + tolerance))
                x, y, z = sx, sy, sz
                for m in range(1, count + 1):
                    if m < cosines.shape[0]:
                        cosine = cosines[m]
                        sine = sines[m]
                    elif curvature == 0.0:
                        cosine = 1.0
                        sine = m * epsilon
                    else:
                        cosine = math.cos(m * epsilon)
                        sine = math.sin(m * epsilon)
                    x = sx * cosine + vx * sine
                    y = sy * cosine + vy * sine
                    z = sz * cosine + vz * sine
                    if m == count and _squared(sx, sy, sz, x, y, z) > rest2:
                        x, y, z = bx, by, bz
                    _write(out, start + placed, x, y, z)
                    placed += 1
                    if placed == 1:
                        second = _time_at(points, times, k - 1, x, y, z, curvature) if polyline else times[k]
                before = latest if count == 1 else k - 1
                latest = k - 1
                sx, sy, sz = x, y, z
        ax, ay, az = bx, by, bz
    final = second
    if placed > 1:
        if polyline:
            x, y, z = _read(out, start + placed - 2)
            final = _time_at(points, times, before, x, y, z, curvature)
        else:
            final = times[before + 1]
    return placed + 1, second, final


@njit(cache=True, parallel=True)
def room(points, offsets, curvature, epsilon):
    """An upper bound of each trace's samples: path length / ε, and two."""
    bounds = np.empty(offsets.shape[0] - 1)
    for i in prange(bounds.shape[0]):
        path = 0.0
        for k in range(offsets[i] + 1, offsets[i + 1]):
            ax, ay, az = _read(points, k - 1)
            bx, by, bz = _read(points, k)
            square = _squared(ax, ay, az, bx, by, bz)
            chord = math.sqrt(square)
            path += chord * (1.0 + curvature * square / 6.0)  # no arc is longer: 2 · 5/3 > π at the antipode
        bounds[i] = path / epsilon * (1.0 + 1e-5) + 2.0  # the tolerance makes steps shorter by 1e-6 at most
    return bounds


@njit(cache=True, parallel=True)
def fill(points, times, offsets, shares, begins, out, rule, cosines, sines, least, last):
    """Sample each share of consecutive traces into out from begins[share] on, but the first and the `last` last ones.

    Traces with fewer than `least` samples left are dropped. Returns per trace the number of records that remain and
    their first and last time.
    """
    traces = offsets.shape[0] - 1
    kept = np.zeros(traces, np.int64)
    begin = np.zeros(traces, np.int64)
    end = np.zeros(traces, np.int64)
    for share in prange(shares.shape[0] - 1):
        cursor = begins[share]
        for i in range(shares[share], shares[share + 1]):
            samples, second, final = _walk(points, times, offsets[i], offsets[i + 1], out, cursor, rule, cosines, sines)
            if samples - 2 >= least:
                kept[i] = samples - 1 - last
                begin[i] = second
                end[i] = final
                cursor += kept[i]
    return kept, begin, end


@njit(cache=True, parallel=True)
def spread(offsets, begin, end):
    """Times from begin to end in equal steps, to the nanosecond: begin + ⌊j · (end − begin)/(n − 1)⌋.

    With q, r = divmod(end − begin, n − 1) that is begin + j · q + ⌊j · r/(n − 1)⌋; the last term counts how often the
    remainders j · r have passed n − 1, in integers, which saves a division for each time.
    """
    times = np.empty(offsets[-1], np.int64)
    for i in prange(offsets.shape[0] - 1):
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
    return times


@njit(cache=True, parallel=True)
def numbers(records):
    """0, 1, 2, …: the positions of records that have no others; in parallel, for first touch of memory bounds it."""
    positions = np.empty(records, np.int64)
    for i in prange(records):
        positions[i] = i
    return positions
