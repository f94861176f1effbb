"""Points in well-known binary, read straight from their bytes."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely

_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])


def read_points(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return x and y of a column of geometries, NaN where there is no point; and whether any has Z or M.

    Bound: a copy of the numbers, where all geometries are plain points as everything writes them; else an object each.
    """
    if pa.types.is_fixed_size_binary(column.type) or pa.types.is_binary_view(column.type):
        column = column.cast(pa.binary())
    points = _plain_points(column)
    if points is not None:
        return points["x"].copy(), points["y"].copy(), False
    geometries = shapely.from_wkb(column.to_numpy(), on_invalid="ignore")
    placed = (shapely.get_type_id(geometries) == shapely.GeometryType.POINT) & ~shapely.is_empty(geometries)
    x, y = np.full((2, len(geometries)), np.nan)
    x[placed], y[placed] = shapely.get_x(geometries[placed]), shapely.get_y(geometries[placed])
    return x, y, bool((shapely.get_coordinate_dimension(geometries) > 2).any())


def bytes_behind(column: pa.ChunkedArray) -> int:
    """Return how many bytes follow the geometries of a column of well-known binary, which reading passes over."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    is_binary = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
    if not is_binary or _plain_points(column) is not None:
        return 0
    contents = [content for content in column.to_pylist() if content is not None]
    geometries = shapely.from_wkb(contents, on_invalid="ignore")
    known = [(len(content), one) for content, one in zip(contents, geometries, strict=True) if one]
    written = shapely.to_wkb([one for _, one in known], output_dimension=4, include_srid=True)
    return sum(max(length - len(plain), 0) for (length, _), plain in zip(known, written, strict=True))


def _plain_points(column: pa.ChunkedArray) -> np.ndarray | None:
    """The fields of plain points, or None where the column holds anything else."""
    size = _POINT.itemsize
    plain = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
    if not plain or column.null_count or not pc.all(pc.equal(pc.binary_length(column), size), min_count=0).as_py():
        return None
    chunks = []
    for chunk in column.chunks:
        start = chunk.offset
        width = np.int64 if pa.types.is_large_binary(chunk.type) else np.int32
        first = np.frombuffer(chunk.buffers()[1], width)[start] if len(chunk) else 0
        chunks.append(np.frombuffer(chunk.buffers()[2], np.uint8, len(chunk) * size, first) if len(chunk) else b"")
    points = np.concatenate([np.frombuffer(chunk, _POINT) for chunk in chunks] or [np.empty(0, _POINT)])
    return points if np.all(points["order"] == 1) and np.all(points["kind"] == 1) else None
