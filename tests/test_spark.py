"""The lines for Spark in the docs protect as a notebook does, where pyspark and Java are installed."""

import os
import re
import shutil
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import promesse_geo as pg

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java"),
    pytest.mark.filterwarnings("ignore"),  # of pyspark
]
PAGE = Path(__file__).resolve().parents[1] / "docs" / "large_data.rst"


@pytest.fixture
def spark(monkeypatch, tmp_path):
    """A session with two workers in a folder, which find the packages of this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    builder = pyspark.sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    session = session.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    yield session
    session.stop()


def lines_of_the_page():
    section = PAGE.read_text(encoding="utf-8").split("\nSpark\n-----\n")[1].split("\nRay, DuckDB")[0]
    return textwrap.dedent(re.search(r"::\n\n((?:    .*\n|\n)+)", section)[1])


def test_the_lines_of_the_docs_protect_as_a_notebook(spark, tmp_path):
    city = pg.make_city(users=3, days=1, seed=4, recorder="phone")
    city = city.assign(time=city["time"].dt.floor("2min"))  # many records of a user share a time
    city = city.iloc[np.random.default_rng(5).permutation(len(city))].reset_index(drop=True)
    (tmp_path / "positions").mkdir()
    for number in range(3):
        rows = city.iloc[len(city) * number // 3 : len(city) * (number + 1) // 3]
        table = {"user": rows["user"], "time": rows["time"].dt.as_unit("us")}
        table |= {"lon": rows.geometry.x, "lat": rows.geometry.y}
        pq.write_table(pa.table(table), tmp_path / "positions" / f"{number}.parquet", row_group_size=500)
    names = {"spark": spark, "__name__": "__main__"}
    exec(lines_of_the_page().replace("repartition(64,", "repartition(5,"), names)
    found = names["safe"].toPandas().sort_values(["user", "time"], ignore_index=True)
    expected = names["mechanism"].protect(city)
    assert found["user"].tolist() == expected["user"].tolist()
    assert found["time"].tolist() == expected["time"].dt.floor("us").dt.tz_localize(None).tolist()
    assert found["lon"].tolist() == expected.geometry.x.tolist()
    assert found["lat"].tolist() == expected.geometry.y.tolist()
