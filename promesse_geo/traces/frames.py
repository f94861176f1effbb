"""Data of other libraries as GeoDataFrames of points: tables with coordinates, and trajectories of MovingPandas."""

import os
from collections.abc import Hashable, Sequence
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
from geopandas.array import GeometryArray

from promesse_geo.messages import listed
from promesse_geo.traces.columns import ROLES, find_column, known_attributes
from promesse_geo.traces.known_columns import LATITUDES, LONGITUDES, candidates_for, fold
from promesse_geo.traces.values import make_points

_TO_FRAME = ("to_dataframe", "toPandas", "compute")  # of xarray, Spark and Dask
_TO_TABLE = ("collect", "to_table")  # of Polars and pyarrow
_FRAME = "geopandas.GeoDataFrame(df, geometry=geopandas.points_from_xy(df.{}, df.{}), crs={})"
_IN_DEGREES = (LONGITUDES[:-1], LATITUDES[:-1])  # without x and y


def as_points(data: Any) -> gpd.GeoDataFrame:
    """Return data that holds points as a GeoDataFrame with one row per record.

    Parameters
    ----------
    data : geopandas.GeoDataFrame, pandas.DataFrame, or movingpandas TrajectoryCollection or Trajectory
        A GeoDataFrame is returned as it is. A DataFrame needs columns of longitude and latitude in degrees
        (EPSG:4326), under names such as lon and lat, as those of scikit-mobility. Trajectories of MovingPandas are
        one user each; if they have an object's id, the trajectories of one object are segments of one user.

    Returns
    -------
    geopandas.GeoDataFrame
        With the rows in the order of the data.

    Raises
    ------
    TypeError
        If the data is of another type, or a DataFrame without such columns.
    ValueError
        If a column of a coordinate is ambiguous or does not hold numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> as_points(pd.DataFrame({"uid": [1], "lng": [4.8], "lat": [45.7]})).geometry.x.tolist()
    [4.8]
    """
    if isinstance(data, gpd.GeoDataFrame):
        return data
    if isinstance(data, pd.DataFrame):
        return _from_coordinates(data)
    if trajectories := _trajectories(data):
        return _from_trajectories(trajectories)
    raise TypeError(_why_not(data))


def _why_not(data: Any) -> str:
    """Return the error for data of a type that is not read."""
    if conversion := conversion_of(data):
        remedy = f"Pass what {conversion} returns."
    elif isinstance(getattr(data, "trajectories", None), list):
        remedy = "It holds no trajectories."
    elif isinstance(data, (str, os.PathLike)):
        remedy = "Read a file with pg.read_file(path)."
    else:
        remedy = f"Make one with {_FRAME.format('lon', 'lat', 4326)}."
    return f"Traces are read from a GeoDataFrame of points. Got a {type_name(data)} instead. {remedy}"


def type_name(data: Any) -> str:
    """Return the name of the type of data, with that of its package."""
    module = type(data).__module__.partition(".")[0].removeprefix("_")
    return type(data).__name__ if module == "builtins" else f"{module}.{type(data).__name__}"


def conversion_of(data: Any) -> str:
    """Return what makes a frame of data that is no frame yet, for messages; empty if that is not known.

    Examples
    --------
    >>> import pyarrow
    >>> conversion_of(pyarrow.table({"user": [1]}))
    'pg.read_table(data)'
    """
    if isinstance(data, (type, pd.Series, pd.Index)):
        return ""
    if hasattr(data, "__arrow_c_stream__"):
        return "pg.read_table(data)"
    for method in _TO_FRAME:
        if hasattr(data, method):
            return f"its method .{method}()"
    return next((f"pg.read_table(data.{method}())" for method in _TO_TABLE if hasattr(data, method)), "")


def _from_coordinates(frame: pd.DataFrame) -> gpd.GeoDataFrame:
    """Return a DataFrame with a geometry instead of its columns of longitude and latitude."""
    lon, lat = find_coordinates(frame)
    x, y = (_numbers(frame[name], name) for name in (lon, lat))
    points = frame.drop(columns=[lon, lat]).assign(
        geometry=gpd.GeoSeries(GeometryArray(make_points(x, y)), index=frame.index, crs=4326)
    )
    made = gpd.GeoDataFrame(points, geometry="geometry")
    made.attrs = {ROLES: known_attributes(frame)} if ROLES in frame.attrs else {}
    return made


def find_coordinates(frame: pd.DataFrame) -> tuple[Any, Any]:
    """Return the columns of longitude and latitude; raise TypeError with the remedy if a table has none."""
    columns = list(frame.columns)
    spelled = [fold(name) for name in columns]
    geometries = [name for name in columns if isinstance(getattr(frame.get(name), "array", None), GeometryArray)]
    prefix = "Traces are read from a GeoDataFrame of points. Got a pandas.DataFrame instead."
    if geometries or "geometry" in columns:
        name = geometries[0] if geometries else "geometry"
        raise TypeError(f"{prefix} Make one with geopandas.GeoDataFrame(df, geometry={name!r}, crs=…).")
    has_degrees = all(candidates_for(columns, names) for names in _IN_DEGREES)
    if not has_degrees and {"x", "y"} <= set(spelled):
        x, y = (columns[spelled.index(axis)] for axis in "xy")
        raise TypeError(f"{prefix} The CRS of {x!r} and {y!r} is unknown. Make one with {_FRAME.format(x, y, '…')}.")
    if not has_degrees:
        raise TypeError(
            f"{prefix} A DataFrame needs columns named as lon and lat; the columns are "
            f"{listed(columns) if columns else 'none'}. Rename those of longitude and latitude, or make a GeoDataFrame "
            f"with {_FRAME.format('…', '…', 4326)}."
        )
    lon, lat = (
        find_column(columns, ..., role=role, known=known)
        for role, known in zip(("lon", "lat"), _IN_DEGREES, strict=True)
    )
    return lon, lat


def _numbers(column: pd.Series, name: Hashable) -> np.ndarray:
    """Return degrees, shape (n,), NaN where they are missing; raise TypeError for anything but numbers."""
    if not pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_complex_dtype(column.dtype):
        raise TypeError(
            f"The column {name!r} must hold degrees as numbers. Got {column.dtype} instead. "
            f"Convert it with pd.to_numeric(df[{name!r}])."
        )
    return column.to_numpy(np.float64, na_value=np.nan)


def _trajectories(data: Any) -> list[Any]:
    """Return the trajectories of a collection or a trajectory of MovingPandas; none of anything else."""
    trajectories = getattr(data, "trajectories", None)
    candidates = trajectories if isinstance(trajectories, list) else [data]
    is_trajectory = [isinstance(getattr(each, "df", None), pd.DataFrame) and hasattr(each, "id") for each in candidates]
    return candidates if all(is_trajectory) else []


def _from_trajectories(trajectories: Sequence[Any]) -> gpd.GeoDataFrame:
    """Return the records of trajectories, with the columns user and time, and segment if objects are known."""
    objects = [getattr(each, "obj_id", None) for each in trajectories]
    known = all(key is not None for key in objects)
    users = objects if known else [each.id for each in trajectories]
    counts = [len(each.df) for each in trajectories]
    joined = pd.concat([each.df for each in trajectories])
    columns: dict[Hashable, Any] = {
        "user": pd.Series(users, dtype=pd.Series(users).dtype).repeat(counts).to_numpy(),
        "time": joined.index,
        "geometry": joined.geometry.array,
    }
    if known:
        columns["segment"] = np.repeat(np.arange(len(trajectories)), counts)
    ids = {getattr(trajectories[0], name, None) for name in ("traj_id_col_name", "obj_id_col_name")}
    described = {*ids, *columns, joined.geometry.name, "traj_id", "obj_id"}
    others = {name: joined[name].array for name in joined.columns if name not in described}
    frame = gpd.GeoDataFrame(columns | others, geometry="geometry", crs=joined.crs)
    frame.attrs[ROLES] = {role: role for role in ("user", "time", "segment") if role in columns}
    return frame
