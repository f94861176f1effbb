"""The index of places in a GeoPackage, which has each point's box once more."""

import sqlite3

import numpy as np

_CELL = np.dtype([("number", ">i8"), ("box", ">f4", 4)])
_HEAD = np.dtype([("depth", ">u2"), ("count", ">u2")])
_FLOAT = 3e-7  # how far, of itself, a coordinate of 32 bits may be rounded outwards


def says_more(file: sqlite3.Connection, table: str, rows: np.ndarray, x: np.ndarray, y: np.ndarray) -> bool:
    """Return whether an R-tree has boxes other than those of the points, or bytes beside its boxes."""
    nodes = dict(file.execute(f"SELECT nodeno, data FROM {table}"))
    depth = int(np.frombuffer(nodes[1], _HEAD, 1)["depth"][0]) if 1 in nodes else 0
    level, seen, boxes = np.array([1]), 0, np.empty(0, _CELL)
    for _ in range(depth + 1):
        seen += len(level)
        parts = [_cells(nodes.get(number, b"")) for number in level.tolist()] if seen <= len(nodes) else [None]
        if any(part is None for part in parts):
            return True
        boxes = np.concatenate([part for part in parts if part is not None] or [np.empty(0, _CELL)])
        level = boxes["number"]
    boxes = boxes[np.argsort(boxes["number"])]
    placed = np.isfinite(x) & np.isfinite(y)
    if seen != len(nodes) or not np.array_equal(boxes["number"], rows[placed]):
        return True
    places = np.stack((x, x, y, y), axis=1)[placed]
    return bool((np.abs(boxes["box"] - places) > _FLOAT * np.abs(places) + 1e-30).any())


def _cells(node: bytes) -> np.ndarray | None:
    """The boxes of a node; None where other bytes follow, or there is none."""
    if len(node) < _HEAD.itemsize:
        return None
    count = int(np.frombuffer(node, _HEAD, 1)["count"][0])
    end = _HEAD.itemsize + count * _CELL.itemsize
    return None if node[end:].strip(b"\0") else np.frombuffer(node, _CELL, count, _HEAD.itemsize)
