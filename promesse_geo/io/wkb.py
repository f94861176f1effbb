"""Points in well-known binary, to and from coordinates."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely

_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])


def encode_points(x: np.ndarray, y: np.ndarray) -> pa.BinaryArray:
    """Return points in well-known binary.

    Parameters
    ----------
    x, y : numpy.ndarray of float64, shape (n,)
        Coordinates.

    Returns
    -------
    pyarrow.BinaryArray of length n
        Little-endian points without Z.
    """
    points = np.empty(len(x), _POINT)
    points["order"], points["kind"], points["x"], points["y"] = 1, 1, x, y
    offsets = np.arange(len(x) + 1, dtype=np.int32) * _POINT.itemsize
    return pa.BinaryArray.from_buffers(pa.binary(), len(x), [None, pa.py_buffer(offsets), pa.py_buffer(points)])


def decode_points(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the coordinates of points in well-known binary.

    Plain points, as nearly all programs write them, are copied; anything else becomes shapely objects first.

    Parameters
    ----------
    column : pyarrow.ChunkedArray of length n
        Geometries in any binary type.

    Returns
    -------
    x, y : numpy.ndarray of float64, shape (n,)
        Coordinates, NaN where there is no point.
    has_z : bool
        Whether any geometry has Z or M.
    """
    if pa.types.is_fixed_size_binary(column.type) or pa.types.is_binary_view(column.type):
        column = column.cast(pa.binary())
    points = _plain_points(column)
    if points is not None:
        return points["x"].copy(), points["y"].copy(), False
    geometries = shapely.from_wkb(column.to_numpy(), on_invalid="ignore")
    is_point = (shapely.get_type_id(geometries) == shapely.GeometryType.POINT) & ~shapely.is_empty(geometries)
    x, y = np.full((2, len(geometries)), np.nan)
    x[is_point], y[is_point] = shapely.get_x(geometries[is_point]), shapely.get_y(geometries[is_point])
    return x, y, bool((shapely.get_coordinate_dimension(geometries) > 2).any())


def _plain_points(column: pa.ChunkedArray) -> np.ndarray | None:
    """Return the fields of plain points, or None if the column holds anything else."""
    size = _POINT.itemsize
    is_binary = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
    if not is_binary or column.null_count:
        return None
    if not pc.all(pc.equal(pc.binary_length(column), size), min_count=0).as_py():
        return None
    points = [np.empty(0, _POINT)]
    for chunk in filter(len, column.chunks):
        width = np.int64 if pa.types.is_large_binary(chunk.type) else np.int32
        first = np.frombuffer(chunk.buffers()[1], width)[chunk.offset]
        points.append(np.frombuffer(chunk.buffers()[2], _POINT, len(chunk), first))
    joined = np.concatenate(points)
    return joined if np.all(joined["order"] == 1) and np.all(joined["kind"] == 1) else None
