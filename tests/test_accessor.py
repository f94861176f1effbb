"""The accessor `gdf.promesse`."""

import importlib
import inspect
import warnings

import geopandas as gpd
import pandas as pd
import pytest
from geopandas.testing import assert_geodataframe_equal

import promesse_geo as pg
from promesse_geo import accessor


@pytest.fixture(scope="module")
def city() -> gpd.GeoDataFrame:
    return pg.make_city(users=2, days=2, recorder="phone").iloc[::5].reset_index(drop=True)


# Each verb by its function and by the accessor, given a frame and names of columns.
VERBS = {
    "prepare": (
        lambda frame, **names: pg.prepare(frame, tz="Europe/Paris", days=1, gap="2h", seed=3, keep_user=True, **names),
        lambda promesse: promesse.prepare(tz="Europe/Paris", days=1, gap="2h", seed=3, keep_user=True),
    ),
    "collapse_empty_days": (
        lambda frame, **names: pg.collapse_empty_days(frame, tz="Asia/Tokyo", **names),
        lambda promesse: promesse.collapse_empty_days(tz="Asia/Tokyo"),
    ),
    "first_days": (
        lambda frame, **names: pg.first_days(frame, days=1, min_days=2, tz="Asia/Tokyo", **names),
        lambda promesse: promesse.first_days(1, min_days=2, tz="Asia/Tokyo"),
    ),
    "split_gaps": (
        lambda frame, **names: pg.split_gaps(frame, gap="1h", seed="s", **names),
        lambda promesse: promesse.split_gaps("1h", seed="s"),
    ),
    "drop_jumps": (
        lambda frame, **names: pg.drop_jumps(frame, max_speed=4, **names),
        lambda promesse: promesse.drop_jumps(4),
    ),
    "drop_zero": (pg.drop_zero, lambda promesse: promesse.drop_zero()),
    "pseudonymize": (
        lambda frame, **names: pg.pseudonymize(frame, seed=1, **names),
        lambda promesse: promesse.pseudonymize(seed=1),
    ),
    "protect": (
        lambda frame, **names: pg.Promesse(100).protect(frame, **names),
        lambda promesse: promesse.protect(pg.Promesse(100)),
    ),
    "smooth": (
        lambda frame, **names: pg.Promesse(100, variant="pseudocode", min_points=3).protect(frame, **names),
        lambda promesse: promesse.smooth(100, variant="pseudocode", min_points=3),
    ),
}


def quietly(verb, *arguments, **named):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return verb(*arguments, **named)


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_equals_its_function(name, city):
    function, verb = VERBS[name]
    assert_geodataframe_equal(quietly(verb, city.promesse), quietly(function, city))


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_takes_the_names_of_the_call(name, city):
    function, verb = VERBS[name]
    renamed = city.rename(columns={"user": "cab", "time": "stamp"})
    result = quietly(verb, renamed.promesse(user="cab", time="stamp"))
    assert_geodataframe_equal(result, quietly(function, renamed, user="cab", time="stamp"))
    assert list(result.columns) == ["cab", "stamp", "geometry"]


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_does_not_change_the_frame(name, city):
    before = city.copy(deep=True)
    quietly(VERBS[name][1], city.promesse)
    assert_geodataframe_equal(city, before)


def test_describe_equals_its_function(city):
    pd.testing.assert_series_equal(city.promesse.describe(), pg.describe(city))


def test_traces_equal_from_frame(city):
    assert_geodataframe_equal(city.promesse.traces().to_frame(), pg.Traces.from_frame(city).to_frame())
    assert city.to_crs(2154).promesse.traces(space="sphere").space.name == "sphere"
    holed = city.copy()
    holed.loc[3, "user"] = None
    with pytest.warns(UserWarning, match="1 record of"):
        assert holed.promesse.traces(errors="skip").records == len(city) - 1


def test_verbs_can_be_called_one_after_the_other(city):
    safe = quietly(lambda: city.promesse.prepare(keep_user=True).promesse.smooth(200))
    expected = quietly(lambda: pg.Promesse(200).protect(pg.prepare(city, keep_user=True)))
    assert_geodataframe_equal(safe, expected)


def test_user_none_is_one_trace(city):
    single = city[city["user"] == "user-000"].drop(columns="user")
    smoothed = single.promesse(user=None).smooth(200)
    expected = pg.Promesse(200).protect(city[city["user"] == "user-000"]).drop(columns="user")
    assert_geodataframe_equal(smoothed, expected)


def test_user_none_drops_the_user_column(city):
    with pytest.warns(UserWarning, match="The column 'user' was dropped"):
        assert list(city.promesse(user=None).smooth(200).columns) == ["time", "geometry"]


def test_names_hold_for_one_call_only(city):
    renamed = city.rename(columns={"user": "cab"})
    assert len(renamed.promesse(user="cab").traces()) == 2
    with pytest.raises(ValueError, match="No user column was found"):
        renamed.promesse.traces()


def test_a_plain_frame_has_no_accessor():
    plain = pd.DataFrame({"user": ["a"]})
    assert not hasattr(plain, "promesse")
    with pytest.raises(
        AttributeError, match=r"from a GeoDataFrame of points.*make a GeoDataFrame with geopandas\.GeoDataFrame\("
    ):
        _ = plain.promesse


@pytest.mark.parametrize(
    "frame",
    [gpd.GeoDataFrame(), gpd.GeoDataFrame({"a": [1]}), gpd.GeoDataFrame(geometry=[], crs=None)],
    ids=["empty", "no geometry", "no CRS"],
)
def test_a_frame_that_cannot_be_used_yet_has_an_accessor(frame):
    assert hasattr(frame, "promesse")
    assert repr(frame.promesse) == f"<promesse accessor on {len(frame):,} rows; see help(gdf.promesse)>"
    with pytest.raises(ValueError, match=r"active geometry|no CRS"):
        frame.promesse.traces()


def test_it_is_found_by_tab_completion(city):
    assert "promesse" in dir(city)
    assert {"traces", "describe", *VERBS} <= set(dir(city.promesse))
    for plain in (pd.DataFrame({"user": ["a"]}), gpd.GeoDataFrame({"a": [1]})):
        for name in dir(plain):
            quietly(getattr, plain, name, None)


def test_a_column_of_that_name_can_be_read_by_its_name():
    frame = gpd.GeoDataFrame({"promesse": [1]})
    assert frame["promesse"].tolist() == [1]
    assert isinstance(frame.promesse, accessor.PromesseAccessor)


def test_importing_it_again_warns_of_nothing():
    assert importlib.import_module("promesse_geo") is pg
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        importlib.reload(accessor)


@pytest.mark.parametrize("name", [name for name in VERBS if name not in ("protect", "smooth")])
def test_defaults_are_those_of_the_function(name):
    function = inspect.signature(getattr(pg, name)).parameters
    verb = inspect.signature(getattr(accessor.PromesseAccessor, name)).parameters
    given = [parameter for parameter in verb if parameter != "self"]
    assert given == [parameter for parameter in function if parameter not in ("data", "user", "time", "segment")]
    assert [verb[parameter].default for parameter in given] == [function[parameter].default for parameter in given]


PUBLIC = [name for name in vars(accessor.PromesseAccessor) if not name.startswith("_")]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_verb_documents_each_parameter_and_shows_an_example(name):
    verb = getattr(accessor.PromesseAccessor, name)
    doc, parameters = inspect.getdoc(verb), list(inspect.signature(verb).parameters)[1:]
    summary, _, rest = doc.partition("\n")
    assert summary.endswith(".")
    section = rest.partition("\nParameters\n----------\n")[2].partition("\nReturns\n")[0]
    documented = [line.partition(" :")[0] for line in section.splitlines() if line[:1].strip()]
    assert documented == parameters
    assert "\nReturns\n-------\n" in rest
    returned = rest.partition("\nReturns\n-------\n")[2].partition("\nRaises\n")[0]
    assert "type of `data`" not in returned
    assert " or Traces" not in returned
    assert f".promesse.{name}(" in rest.partition("\nExamples\n--------\n>>> ")[2]


def test_a_verb_keeps_the_types_of_its_parameters():
    assert inspect.signature(accessor.PromesseAccessor.smooth).parameters["epsilon"].annotation is float


def test_another_object_is_no_mechanism(city):
    with pytest.raises(TypeError, match=r"'mechanism' .* must be a mechanism such as pg\.Promesse\(200\)\. Got 200"):
        city.promesse.protect(200.0)


def test_warnings_point_at_the_callers_line(city):
    with pytest.warns(UserWarning, match="dropped") as caught:
        city.assign(speed=1).promesse.smooth(200)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("name", [name for name in PUBLIC if name in pg.__all__])
def test_a_function_takes_by_position_what_its_verb_takes(name):
    """So that `gdf.pipe(pg.drop_jumps, 50)` is `gdf.promesse.drop_jumps(50)`."""

    def by_position(function) -> list[str]:
        parameters = inspect.signature(function).parameters.values()
        return [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]

    function, verb = by_position(getattr(pg, name)), by_position(getattr(accessor.PromesseAccessor, name))
    assert function[1:] == verb[1:]


@pytest.mark.parametrize(
    "call", [(pg.drop_jumps, 30), (pg.split_gaps, "2h"), (pg.first_days, 1), (pg.pois, 150, "20min")]
)
def test_functions_of_data_can_be_piped(city, call):
    function, *arguments = call
    named = quietly(getattr(city.promesse, function.__name__), *arguments)
    assert len(quietly(city.pipe, function, *arguments)) == len(named) > 0
