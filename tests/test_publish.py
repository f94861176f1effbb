"""The check before publishing: each test passes, looks and fails where it should."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import promesse_geo as pg
from promesse_geo.publish import file_epsilon, file_findings

pytestmark = pytest.mark.filterwarnings("ignore:.*could not be protected")


@pytest.fixture(scope="module")
def parts():
    return pg.prepare(pg.make_city(users=4, days=2), tz="Europe/Paris", seed=1)


@pytest.fixture(scope="module")
def safe(parts):
    return pg.Promesse(200).protect(parts)


def verdicts(table: pd.DataFrame) -> dict[str, str]:
    return dict(zip(table["test"], table["verdict"], strict=True))


def reason(table: pd.DataFrame, test: str) -> str:
    return table.set_index("test").loc[test, "reason"]


def test_smoothed_parts_pass_but_for_their_digits(parts, safe):
    table = parts.promesse.check(safe, epsilon=200)
    assert list(table.columns) == ["test", "verdict", "reason"]
    assert verdicts(table) == {
        "user keys are pseudonyms": "passed",
        "no other columns": "passed",
        "first points are away": "passed",
        "last points are away": verdicts(table)["last points are away"],
        "times are new": "passed",
        "points are new": "passed",
        "no needless digits": "look",
        "no attributes": "passed",
    }
    assert verdicts(table)["last points are away"] in ("passed", "look")


def test_without_epsilon_the_distances_are_listed(parts, safe):
    table = parts.promesse.check(safe)
    assert verdicts(table)["first points are away"] == "look"
    assert "the nearest is 200.0 m away" in reason(table, "first points are away")


def test_data_published_as_it_was_fails(parts):
    table = parts.promesse.check(parts, epsilon=200)
    assert verdicts(table)["points are new"] == "failed"
    assert verdicts(table)["first points are away"] == "failed"
    assert verdicts(table)["times are new"] == "look"
    assert f"{len(parts):,} of {len(parts):,}" in reason(table, "times are new")


def test_one_trace_as_it_was_among_others_fails(parts, safe):
    user = safe["user"].iloc[0]
    mixed = pd.concat([safe[safe["user"] != user], parts[parts["user"] == user]])
    table = parts.promesse.check(mixed)
    assert verdicts(table)["points are new"] == "failed"
    assert "1 trace would be published" in reason(table, "points are new")


def test_one_true_point_or_time_is_seen(parts, safe):
    touched = safe.copy()
    user = touched["user"].iloc[0]
    row = parts[parts["user"] == user].iloc[3]
    touched.loc[1, "geometry"] = row["geometry"]
    touched.loc[1, "time"] = row["time"]
    table = parts.promesse.check(touched)
    assert reason(table, "points are new").startswith("1 of ")
    assert reason(table, "times are new").startswith("1 of ")


def test_a_true_point_of_another_user_is_not_counted(parts, safe):
    touched = safe.copy()
    other = parts[parts["user"] != touched["user"].iloc[0]].iloc[0]
    touched.loc[1, "geometry"] = other["geometry"]
    assert verdicts(parts.promesse.check(touched))["points are new"] == "passed"


@pytest.mark.parametrize("short", [1e-9 * 200, 1e-3])
def test_the_first_point_may_be_short_by_the_tolerance_only(short):
    grid = 'LOCAL_CS["grid",UNIT["metre",1]]'

    def line(begin):
        x = np.array([begin, begin + 500.0])
        return pg.Traces.from_arrays(x, x * 0, times=np.array([0, 10**10]), users=["u"], counts=[2], crs=grid)

    table = pg.check_published(line(0.0), line(200 - short), epsilon=200)
    assert verdicts(table)["first points are away"] == ("failed" if short > 1e-6 else "passed")


def test_with_no_user_in_common_traces_are_not_comparable(parts, safe):
    table = parts.promesse.check(pg.pseudonymize(safe), epsilon=200)
    tests = ["first points are away", "last points are away", "times are new", "points are new"]
    assert [verdicts(table)[test] for test in tests] == ["not comparable"] * 4


def test_names_of_people_are_looked_at():
    city = pg.make_city(users=2, days=1)
    assert verdicts(city.promesse.check(city.promesse.smooth(200)))["user keys are pseudonyms"] == "look"


def test_other_columns_and_elevations_fail(parts, safe):
    table = parts.promesse.check(safe.assign(phone="secret"))
    assert verdicts(table)["no other columns"] == "failed"
    assert "'phone'" in reason(table, "no other columns")
    assert "secret" not in table.to_string()


def test_attributes_are_looked_at(parts, safe):
    noted = safe.copy()
    noted.attrs["source"] = "secret"
    table = parts.promesse.check(noted)
    assert verdicts(table)["no attributes"] == "look"
    assert "secret" not in table.to_string()


def test_rounded_points_have_no_needless_digits(parts, safe):
    rounded = safe.copy()
    rounded["geometry"] = rounded.geometry.set_precision(1e-7)
    assert verdicts(parts.promesse.check(rounded))["no needless digits"] == "passed"


def test_another_crs_and_another_order_change_nothing(parts, safe):
    there = safe.to_crs(3857).sample(frac=1, random_state=0)
    table, same = parts.promesse.check(there, epsilon=199.99), parts.promesse.check(safe, epsilon=199.99)
    assert verdicts(table) == verdicts(same)


def test_naive_and_zoned_times_are_not_compared(parts, safe):
    zoned = safe.assign(time=safe["time"].dt.tz_localize("UTC"))
    with pytest.raises(ValueError, match="protected times have a time zone and the original ones have none"):
        parts.promesse.check(zoned)


def test_both_frames_are_read_by_the_same_names(parts, safe):
    names = {"user": "cab", "time": "stamp"}
    table = parts.rename(columns=names).promesse(user="cab", time="stamp").check(safe.rename(columns=names))
    assert verdicts(table)["no other columns"] == "passed"


def test_empty_protected_data_is_not_comparable(parts, safe):
    assert verdicts(parts.promesse.check(safe.iloc[:0]))["points are new"] == "not comparable"


def test_a_file_names_its_epsilon_and_nothing_else(tmp_path, safe):
    for ending in ("parquet", "gpkg"):
        path = tmp_path / f"safe.{ending}"
        pg.write(safe, path, mechanism=pg.Promesse(200))
        assert file_epsilon(path) == 200
        assert file_findings(path)["verdict"].tolist() == ["passed", "passed"]
    pg.write(safe, tmp_path / "noise.parquet", mechanism=pg.GeoIndistinguishability(0.01))
    assert file_epsilon(tmp_path / "noise.parquet") is None
    pg.write(safe, tmp_path / "safe.csv")
    assert file_epsilon(tmp_path / "safe.csv") is None


def test_foreign_metadata_is_looked_at(tmp_path, safe):
    path = tmp_path / "safe.parquet"
    pg.write(safe, path)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"author": b"secret"}), path)
    table = file_findings(path)
    assert table["verdict"].tolist() == ["passed", "look"]
    assert "'author'" in table["reason"].iloc[1]
    assert "secret" not in table["reason"].iloc[1]


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "geojson", "csv"])
def test_other_columns_of_a_file_fail_though_reading_leaves_them_out(tmp_path, safe, ending):
    path = tmp_path / f"safe.{ending}"
    extended = safe.assign(phone="secret")
    if ending == "parquet":
        extended.to_parquet(path)
    elif ending == "csv":
        extended.drop(columns="geometry").assign(lon=safe.geometry.x, lat=safe.geometry.y).to_csv(path, index=False)
    else:
        extended.to_file(path)
    table = file_findings(path)
    assert table["verdict"].iloc[0] == "failed"
    assert "'phone'" in table["reason"].iloc[0]
    assert "secret" not in table["reason"].iloc[0]
