"""Values of parameters that no mechanism and no metric takes: the rule, the value and the remedy are in the error."""

import sys

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from strategies import texts_of_seeds

import promesse_geo as pg
from promesse_geo.cli import main, values
from promesse_geo.cli.tune import METRICS
from promesse_geo.io.text_layout import check_text_options
from promesse_geo.validation import check_duration, check_integer, check_number, check_seed

SEEDED = {
    "GeoIndistinguishability": lambda seed: pg.GeoIndistinguishability(0.01, seed=seed),
    "PrivacyZones": lambda seed: pg.PrivacyZones(seed=seed),
    "Promesse": lambda seed: pg.Promesse(200, ends=400, seed=seed),
    "WaitForMe": lambda seed: pg.WaitForMe(seed=seed),
    "RangeQueryDistortion": lambda seed: pg.RangeQueryDistortion(seed=seed),
    "pseudonymize": lambda seed: pg.pseudonymize(pg.make_city(users=1, days=1, recorder="phone"), seed=seed),
}


@pytest.mark.parametrize("owner", SEEDED)
@pytest.mark.parametrize("seed", ["", " ", "\t\n", "nan", "NaN", " nan "])
def test_blank_text_and_a_missing_number_are_no_seeds(owner, seed):
    got = "missing number" if seed.strip() else "empty text"
    with pytest.raises(ValueError, match=rf"'seed' parameter of {owner} must be .*Got an? {got}.*Omit it"):
        SEEDED[owner](seed)


@given(texts_of_seeds)
def test_other_text_is_a_seed(seed):
    assert check_seed(seed, owner="test") == seed


@pytest.mark.parametrize("command", ["geo-indistinguishability", "wait-for-me", "measure", "report", "tune"])
@pytest.mark.parametrize("seed", ["", " ", "nan"])
def test_seeds_of_the_command_line_are_checked_before_files_are_read(command, seed):
    done = CliRunner().invoke(main, [command, "no.csv", "out.csv", "--seed", seed])
    assert done.exit_code == 2
    assert "'--seed': must " in done.stderr
    assert "Omit it" in done.stderr


WORDS = {
    ("smooth", "--min-points", "0"): "must be a whole number of at least 1. Got 0 instead",
    ("smooth", "--min-points", "1.5"): "must be a whole number of at least 1. Got '1.5' instead",
    ("smooth", "--min-points", "9" * 23): "must be a whole number of at most 9,223,372,036,854,775,807",
    ("wait-for-me", "--k", "1"): "must be a whole number of at least 2. Got 1 instead",
    ("wait-for-me", "--k", "many"): "must be a whole number of at least 2. Got 'many' instead",
    ("wait-for-me", "--k", "1_0"): "must be a whole number of at least 2. Got '1_0' instead",
    ("geo-indistinguishability", "--radius", "1_0"): "must be a number. Got '1_0' instead",
    ("geo-indistinguishability", "--radius", "wide"): "must be a number. Got 'wide' instead",
    ("info", "--separator", "0"): "must be one character such as ';'",
}


@pytest.mark.parametrize("typed", WORDS, ids=" ".join)
def test_errors_of_options_have_the_rule_and_the_value(typed):
    command, option, value = typed
    places = {"info": ["no.csv"]}.get(command, ["no.csv", "out.csv"])
    done = CliRunner().invoke(main, [command, *places, option, value])
    assert done.exit_code == 2
    assert f"'{option}': {WORDS[typed]}" in done.stderr


REFUSED = [
    ("prepare", "--gap", "1_0"),
    ("prepare", "--gap", "1_0min"),
    ("prepare", "--gap", "٣"),
    ("prepare", "--gap", "٣min"),
    ("pois", "--duration", "１５min"),
    ("prepare", "--days", "٣"),
    ("smooth", "--epsilon", "٣"),
    ("smooth", "--epsilon", "1_0"),
    ("smooth", "--memory", "٣GB"),
    ("smooth", "--dask", "x"),
    ("smooth", "--dask", "tcp://host"),
    ("map", "--period", "5 m"),
    ("map", "--period", "1,5"),
    ("map", "--period", "5"),
    ("map", "--tiles", "x"),
    ("map", "--tiles", ""),
    ("map", "--background", ""),
]


@pytest.mark.parametrize("typed", REFUSED, ids=" ".join)
def test_values_that_are_likely_slips_are_refused_before_files_are_read(typed, tmp_path):
    command, option, value = typed
    (tmp_path / "raw.csv").write_text("nothing\n")
    places = [str(tmp_path / "raw.csv"), str(tmp_path / ("map.html" if command == "map" else "out.csv"))]
    done = CliRunner().invoke(main, [command, *places, option, value])
    assert done.exit_code == 2
    assert option in done.stderr
    assert " must be " in done.stderr
    assert f"Got {value!r}" in done.stderr or not value


@given(st.text(st.sampled_from("0123456789_.٣１²"), min_size=1), st.sampled_from(["", "s", "min"]))
def test_numbers_of_durations_are_of_plain_digits(number, unit):
    if number.isascii() and "_" not in number:
        return
    with pytest.raises(ValueError, match="'gap' parameter of test must be a duration"):
        check_duration(number + unit, name="gap", owner="test")


@pytest.mark.parametrize(
    "address", ["tcp://host:8786", "host:8786", "tls://10.0.0.1:80", "inproc://1/2", "tcp://[::1]:1"]
)
def test_addresses_of_schedulers_are_accepted(address):
    assert values.ADDRESS.convert(address, None, None) == address


@pytest.mark.parametrize(
    "goal",
    [
        ("--at-most", "poi-retrieval", "-1"),
        ("--at-least", "poi-retrieval", "1e23"),
        ("--at-most", "spatial-error", "-5"),
        ("--at-least", "linkage", "100.5"),
    ],
)
def test_limits_that_no_value_reaches_are_refused(goal, tmp_path):
    (tmp_path / "raw.csv").write_text("nothing\n")
    done = CliRunner().invoke(main, ["tune", str(tmp_path / "raw.csv"), "--from", "1", "--to", "5", *goal])
    assert done.exit_code == 2
    assert "as its values are" in " ".join(done.stderr.split())


@pytest.mark.parametrize("kind", METRICS.values())
def test_shares_have_bounds(kind):
    low, high = kind.bounds
    assert low == 0
    assert high == (100 if kind.unit == "%" and kind not in (pg.Compression, pg.RangeQueryDistortion) else np.inf)


@given(st.integers() | st.integers(2**63 - 5, 2**64), st.integers(0, 5))
def test_whole_numbers_are_those_of_64_bits(value, low):
    if low <= value <= sys.maxsize:
        assert check_integer(value, name="n", owner="test", low=low) == value
        assert check_integer(np.int64(value), name="n", owner="test", low=low) == value
    else:
        with pytest.raises(ValueError, match="'n' parameter of test must be a whole number of at"):
            check_integer(value, name="n", owner="test", low=low)


@given(st.floats(width=64) | st.floats(0, 1e13))
def test_numbers_without_a_limit_of_their_own_have_one(value):
    if 0 < value <= 1e12:
        assert check_number(value, name="x", owner="test", unit="metres") == value
    else:
        with pytest.raises(ValueError, match="'x' parameter of test must be"):
            check_number(value, name="x", owner="test", unit="metres")


@given(st.characters(max_codepoint=255))
def test_a_separator_is_no_part_of_a_number_or_time(sign):
    if sign.isascii() and not sign.isalnum() and sign not in '.+-"\r\n\0':
        assert check_text_options(sign, None, None, None, None).separator == sign
    else:
        with pytest.raises(ValueError, match="'separator' parameter of read_table must be one character"):
            check_text_options(sign, None, None, None, None)
