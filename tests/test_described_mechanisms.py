"""Mechanisms of other authors: their parameters in results and files, and how they are found again."""

import datetime
import enum
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

import promesse_geo as pg
from promesse_geo.audit import file_mechanism
from promesse_geo.mechanisms import mechanism_classes

pytestmark = pytest.mark.filterwarnings("ignore:.*could not be protected")


@dataclass(frozen=True)
class _With(pg.Mechanism):
    """A mechanism with a parameter of any type."""

    value: Any

    def _protect(self, traces):
        return traces


class _Smoother(pg.Promesse):
    """A subclass of a subclass."""


class _Colour(enum.Enum):
    RED = object()


def named():
    """A function with a name."""


STORED = [
    (np.float64(0.5), 0.5),
    (np.float32(0.5), 0.5),
    (np.int64(7), 7),
    (np.bool_(True), True),
    (np.str_("a"), "a"),
    ([np.int8(1), (np.float32(2), None)], [1, [2.0, None]]),
    ({"a": np.int64(1), 2: "b"}, {"a": 1, "2": "b"}),
    ({(1, np.int64(2)): "pair", (3,): 4}, {"(1, 2)": "pair", "(3)": 4}),
    ({1: "a", "1": "b"}, [["1", "a"], ["1", "b"]]),
    ({3, 1, 2}, [1, 2, 3]),
    (pd.Timedelta("15min"), "Timedelta('0 days 00:15:00')"),
    (datetime.datetime(2020, 1, 2, 3, 4, 5, 6), "datetime.datetime(2020, 1, 2, 3, 4, 5, 6)"),
    (_Colour.RED, "_Colour.RED"),
    (named, f"{__name__}.named"),
    (lambda: 1, f"{__name__}.<lambda>"),
    (object(), "a value of type object"),
    (np.array([48.123]), "a value of type ndarray and shape (1,)"),
]


@pytest.mark.parametrize(("value", "stored"), STORED, ids=[type(value).__name__ for value, _ in STORED])
def test_parameters_are_stored_as_plain_values_or_as_a_text_that_stays_the_same(tmp_path, value, stored):
    mechanism = _With(value)
    expected = {"mechanism": "_With", "parameters": {"value": stored}}
    assert mechanism.description() == expected
    assert repr(mechanism.description()) == repr(expected)  # types too
    city = pg.make_city(users=1, days=1, recorder="phone")
    results = pg.evaluate({"city": city}, [mechanism], [pg.Compression()])
    assert json.loads(results.parameters[0]) == {"value": stored}
    assert " at 0x" not in results.to_string() + str(results.attrs)
    pg.write(mechanism.protect(city), tmp_path / "a.parquet")
    assert pg.read_file(tmp_path / "a.parquet", as_traces=True).protection == expected


def test_mechanisms_that_differ_by_an_address_alone_are_not_mixed():
    city = pg.make_city(users=1, days=1, recorder="phone")
    with pytest.raises(ValueError, match="must differ"):
        pg.evaluate({"city": city}, [_With(lambda: 1), _With(lambda: 2)], [pg.Compression()])


def test_a_subclass_of_a_mechanism_is_found_in_files(tmp_path):
    pg.write(_Smoother(200).protect(pg.make_city(users=1, days=1, recorder="phone")), tmp_path / "a.parquet")
    assert file_mechanism(tmp_path / "a.parquet") == _Smoother(200)


def test_mechanisms_of_the_package_come_first_and_keep_their_names():
    mine = type("Promesse", (pg.Promesse,), {})
    classes = mechanism_classes()
    assert [classes[name] for name in ("Promesse", "_Smoother")] == [pg.Promesse, _Smoother]
    assert mine not in classes.values()
    own = {"Promesse", "GeoIndistinguishability", "WaitForMe", "PrivacyZones", "Chain"}
    assert set(list(classes)[: len(own)]) == own
