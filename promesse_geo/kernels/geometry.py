"""Distances and segments on the sphere and in the plane, shared by the kernels.

Points are unit vectors on the sphere (curvature κ = 1, lengths in radians) or metres in the plane (κ = 0). Every
formula of the sphere becomes that of the plane at κ = 0.
"""

import math

from promesse_geo.kernels import inner


@inner()
def read(points, i):
    """Return x, y and z of a point; z is 0 in the plane.

    Parameters
    ----------
    points : float64, shape (n, 3) or (n, 2)
        Unit vectors, or metres in the plane.
    i : int
        The row of the point.
    """
    return points[i, 0], points[i, 1], points[i, 2] if points.shape[1] == 3 else 0.0


@inner()
def squared(ax, ay, az, bx, by, bz):
    """Return |b − a|², the squared chord between two points; in the plane, square metres.

    Parameters
    ----------
    ax, ay, az, bx, by, bz : float
        Two unit vectors, or metres in the plane with z = 0.
    """
    x = bx - ax
    y = by - ay
    z = bz - az
    return x * x + y * y + z * z


@inner()
def square_between(points, i, others, j):
    """Return the squared chord between points[i] and others[j]; in the plane, square metres.

    Parameters
    ----------
    points, others : float64, shapes (n, 3) and (m, 3), or (n, 2) and (m, 2)
        Unit vectors, or metres in the plane.
    i, j : int
        The rows of the points.
    """
    dx = points[i, 0] - others[j, 0]
    dy = points[i, 1] - others[j, 1]
    square = dx * dx + dy * dy
    if points.shape[1] == 3:
        dz = points[i, 2] - others[j, 2]
        square += dz * dz
    return square


@inner()
def square_to(points, i, x, y, z):
    """Return the squared chord between points[i] and the point (x, y, z); in the plane, square metres.

    Parameters
    ----------
    points : float64, shape (n, 3) or (n, 2)
        Unit vectors, or metres in the plane.
    i : int
        The row of the point.
    x, y, z : float
        The other point, of any length; z is ignored in the plane.
    """
    dx = points[i, 0] - x
    dy = points[i, 1] - y
    square = dx * dx + dy * dy
    if points.shape[1] == 3:
        dz = points[i, 2] - z
        square += dz * dz
    return square


@inner()
def arc(square, curvature):
    """Return the length of the arc over a squared chord c²: 2 arcsin(c/2) in radians on the sphere, c in the plane.

    Parameters
    ----------
    square : float
        c², or square metres in the plane.
    curvature : float
        1 on the sphere, 0 in the plane.
    """
    chord = math.sqrt(square)
    if square * curvature < 1e-4:  # the series is exact to the last digit
        return chord * (1.0 + curvature * square * (1.0 / 24.0 + square * (3.0 / 640.0)))
    return chord if curvature == 0.0 else 2.0 * math.asin(min(0.5 * chord, 1.0))


@inner()
def arc_between(ax, ay, az, bx, by, bz, curvature):
    """Return the length of the arc from a to b, accurate up to antipodes: 2 atan2(|b − a|, |b + a|).

    Parameters
    ----------
    ax, ay, az, bx, by, bz : float
        Two unit vectors, or metres in the plane with z = 0.
    curvature : float
        1 on the sphere (lengths in radians), 0 in the plane (metres).
    """
    square = squared(ax, ay, az, bx, by, bz)
    if curvature * square < 1e-4:
        return arc(square, curvature)
    return 2.0 * math.atan2(math.sqrt(square), math.sqrt(squared(-ax, -ay, -az, bx, by, bz)))


@inner()
def direction(ax, ay, az, bx, by, bz, curvature):
    """Return the tangent v at a towards b and |v|², where v = d + κ|d|²/2 · a and d = b − a.

    |v|² is summed, because |d|²(1 − κ|d|²/4) cancels near antipodes. Between antipodes v has any direction.

    Parameters
    ----------
    ax, ay, az, bx, by, bz : float
        Two unit vectors, or metres in the plane with z = 0.
    curvature : float
        κ: 1 on the sphere, 0 in the plane.
    """
    x = bx - ax
    y = by - ay
    z = bz - az
    square = x * x + y * y + z * z
    half = 0.5 * curvature * square
    if half > 1.0:  # beyond 90 degrees: start from the antipode, where nothing cancels
        x = bx + ax
        y = by + ay
        z = bz + az
        half = -0.5 * (x * x + y * y + z * z)
    x += half * ax
    y += half * ay
    z += half * az
    if half < 0.0:
        off = x * ax + y * ay + z * az
        x -= off * ax
        y -= off * ay
        z -= off * az
    length = x * x + y * y + z * z
    if curvature != 0.0 and length < 1e-24 * square:
        if abs(az) < 0.9:
            return -ax * az, -ay * az, 1.0 - az * az, 1.0 - az * az
        return 1.0 - ax * ax, -ax * ay, -ax * az, 1.0 - ax * ax
    return x, y, z, length
