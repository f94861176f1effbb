"""Offsets from UTC in the text of times, in all spellings that are parsed."""

import json
import re
from datetime import UTC, datetime, timedelta

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tables import HEADER, csv_of

import promesse_geo as pg
from promesse_geo.io.table_times import parse_times, written_offset

OFFSETS = r"(?P<blanks> {0,2})(?P<sign>[-+])(?P<hours>\d\d?)(?P<minutes>:\d\d?|\d\d|)"
DAYS = {"-": "2024-06-01", "": "20240601"}
CLOCKS = {"-": ("12:30:15", "12:30", "12", "12:30:15.25"), "": ("123015", "1230", "12")}

clocks = st.sampled_from(list(DAYS)).flatmap(
    lambda dash: st.tuples(st.just(DAYS[dash]), st.sampled_from("T "), st.sampled_from(CLOCKS[dash]))
)
offsets = st.tuples(
    st.sampled_from(["", " ", "  "]),
    st.sampled_from("+-"),
    st.one_of(st.integers(0, 23).map(str), st.integers(0, 23).map("{:02d}".format)),
    st.one_of(
        st.just(""), st.integers(0, 59).map("{:02d}".format), st.integers(0, 59).map(":{:02d}".format),
        st.integers(0, 9).map(":{}".format),
    ),
).map("".join)  # fmt: skip
texts = st.tuples(clocks.map("".join), offsets).map("".join)


def plain_time(text: str) -> tuple[datetime, timedelta] | None:
    """Time in UTC and offset of a text; None if its three digits mean several offsets."""
    day, clock, _, sign, hours, minutes = re.fullmatch(rf"([-\d]+)[T ]([\d:.]+?){OFFSETS}", text).groups()
    if len(hours + minutes) == 3 and ":" not in minutes:
        return None
    offset = timedelta(hours=int(hours), minutes=int(minutes.strip(":") or 0)) * (-1 if sign == "-" else 1)
    digits = clock.replace(":", "").partition(".")
    second = timedelta(
        hours=int(digits[0][:2]), minutes=int(digits[0][2:4] or 0), seconds=float(f"{digits[0][4:] or 0}.{digits[2]}0")
    )
    return datetime.strptime(day.replace("-", ""), "%Y%m%d").replace(tzinfo=UTC) + second - offset, offset


@given(st.lists(texts, min_size=1, max_size=5))
@example(["2024-06-01T12:00:00+1:00"])
@example(["2024-06-01T12:00:00+9:00", "2024-06-01T12:00:00+10:00"])
@example(["2024-06-01T12:00:00+1", "2024-06-01 12:00  -5:5"])
@example(["2024-06-01T12:00:00+130", "2024-06-01T12:00:00+01:30"])
def test_offsets_are_applied_in_all_spellings_or_refused(written):
    expected = [plain_time(text) for text in written]
    column = pa.chunked_array([pa.array(written)])
    if None in expected:
        with pytest.raises(ValueError, match=r"the offset '[-+]\d{3}' from UTC.*not sure.*Write"):
            parse_times(column, "time")
        return
    times, notes = parse_times(column, "time")
    assert times.dt.tz is not None
    assert not notes
    assert list(times) == [pd.Timestamp(time) for time, _ in expected]
    for text, (_, offset) in zip(written, expected, strict=True):
        assert written_offset([text]).utcoffset(None) == offset


@given(st.lists(clocks.map("".join), min_size=1, max_size=3), texts.filter(plain_time))
def test_times_with_and_without_an_offset_are_not_mixed(plain, zoned):
    assert parse_times(pa.chunked_array([pa.array(plain)]), "time")[0].dt.tz is None
    assert written_offset(plain) is None
    with pytest.raises(ValueError, match="mixes times with and without a zone"):
        parse_times(pa.chunked_array([pa.array([*plain, zoned])]), "time")


@pytest.mark.parametrize("ending", ["csv", "json"])
@pytest.mark.parametrize("offset", ["+1:00", "+1", "+01:0", " +1:00", "+01:00"])
def test_files_have_the_same_time_however_its_offset_is_written(offset, ending, tmp_path):
    text = f"2024-06-01T12:00:00{offset}"
    path = csv_of(tmp_path, HEADER, f"ana,{text},4.84,45.75", f"ana,{text},4.85,45.75")
    if ending == "json":
        path = tmp_path / "records.json"
        path.write_text(json.dumps([{"user": "ana", "time": text, "lon": 4.84, "lat": 45.75}] * 2))
    traces = pg.read_file(path, as_traces=True)
    assert (traces.times == pd.Timestamp("2024-06-01T11:00:00").value).all()
    assert traces.to_frame()["time"].dt.tz is not None


@pytest.mark.parametrize(
    "text", ["2024-06-01", "12:00 01-06-2024", "2024-06", "2024-06-01T12:00:00+130", "2024-06-01T12:00+24:00"]
)
def test_what_is_no_offset_is_none(text):
    assert written_offset([text]) is None
