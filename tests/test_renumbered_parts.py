"""Parts that were numbered anew, as by zones before `prepare`, are never compared with other parts of their user."""

import warnings

import numpy as np
import pytest
from click.testing import CliRunner

import promesse_geo as pg
from promesse_geo.cli import main
from promesse_geo.traces.owners import count_renumbered
from promesse_geo.traces.pairs import align

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
METRICS = [pg.PoiRetrieval(), pg.SpatialError(), pg.AreaCoverage()]


@pytest.fixture(scope="module")
def raw():
    return pg.make_city(users=4, days=4, seed=3, recorder="phone")


@pytest.fixture(scope="module")
def parts(raw):
    return raw.promesse.prepare(keep_user=True)


@pytest.fixture(scope="module")
def zoned_first(raw):
    return raw.promesse.zones(600, 500, seed=1).promesse.prepare(keep_user=True)


def lacking(parts, safe):
    """The protected parts whose names the original has, too, so that numbers alone could be compared."""
    return safe[safe["user"].isin(parts["user"])]


def test_the_twin_counts_the_same(parts, zoned_first):
    safe = lacking(parts, zoned_first)
    spans = {user: (rows["time"].min(), rows["time"].max()) for user, rows in parts.groupby("user")}
    expected = 0
    for user, rows in safe.groupby("user"):
        first, last = rows["time"].min(), rows["time"].max()
        begin, end = spans[user]
        others = [span for name, span in spans.items() if name[:-6] == user[:-6]]
        apart = last < begin or first > end
        expected += apart and any(span[0] <= first and last <= span[1] for span in others)
    assert expected > 0
    assert count_renumbered(align(parts.promesse.traces(), safe.promesse.traces())) == expected


@pytest.mark.parametrize("protect", [lambda frame: frame, lambda frame: frame.promesse.smooth(100)])
def test_they_are_refused_with_the_reason(parts, zoned_first, protect):
    safe = protect(zoned_first)
    some = lacking(parts, safe)
    for given, said in ((safe, "other parts of users that it has"), (some, "another original part of the user")):
        for compare in (
            *(lambda metric=metric, given=given: metric.measure(parts, given) for metric in METRICS),
            lambda given=given: parts.promesse.map(given),
        ):
            with pytest.raises(ValueError, match=said) as caught:
                compare()
            assert "Prepare first" in str(caught.value)
            assert "renamed" not in str(caught.value)
    with pytest.raises(ValueError, match="another original part"):
        parts.promesse.check(some)


def test_check_recognizes_promesse_in_files_that_note_nothing(parts, zoned_first):
    some = lacking(parts, zoned_first.promesse.smooth(100))
    some.attrs = {}
    with pytest.raises(ValueError, match="another original part"):
        parts.promesse.check(some)


def test_the_risk_report_compares_them_by_owner(parts, zoned_first, tmp_path):
    some = lacking(parts, zoned_first.promesse.smooth(100))
    found = pg.report(parts, some, tmp_path / "page.html", seed=1)
    assert found.utility.set_index("metric")["value"]["SpatialError"] < 1


@pytest.mark.parametrize(
    "protect",
    [
        lambda frame: frame.promesse.zones(600, 500, seed=1).promesse.smooth(100),
        lambda frame: frame.promesse.geo_indistinguishability(0.01, seed=1),
        lambda frame: frame.promesse.wait_for_me(k=2, delta=5_000),
        lambda frame: frame.assign(time=frame["time"] + np.timedelta64(9, "h")),
    ],
)
def test_right_parts_are_compared_whatever_the_mechanism_does_to_times(parts, protect):
    assert np.isfinite(pg.SpatialError().measure(parts, protect(parts)))


def test_the_command_line_says_what_to_do(raw, tmp_path):
    pg.write(raw, tmp_path / "raw.parquet")
    for words in (
        ["prepare", "raw", "parts", "--keep-users"],
        ["zones", "raw", "rest", "--radius", "600", "--offset", "500", "--keep-users"],
        ["prepare", "rest", "zoned", "--keep-users"],
        ["smooth", "zoned", "safe", "--epsilon", "100", "--keep-users"],
    ):
        command, source, target, *options = words
        paths = [str(tmp_path / f"{name}.parquet") for name in (source, target)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = CliRunner().invoke(main, [command, *paths, *options])
        assert done.exit_code == 0, done.output
    done = CliRunner().invoke(main, ["measure", *(str(tmp_path / f"{name}.parquet") for name in ("parts", "safe"))])
    assert done.exit_code == 1
    assert "promesse-geo prepare split traces elsewhere" in done.output
    assert "renamed" not in done.output
