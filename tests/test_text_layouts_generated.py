"""Text in any layout is read to the records that a plain writer was given; lines have the numbers of an editor."""

import csv
import io
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import promesse_geo as pg

PARIS = ZoneInfo("Europe/Paris")
SUMMER = datetime(2024, 5, 6, 7, 8, 9)  # no clock changes within the days after it


@dataclass(frozen=True)
class TimeNotation:
    """How a local time is written in one column or two, and the options that it needs."""

    columns: tuple[tuple[str, str], ...]
    options: dict = field(default_factory=dict)

    def values(self, time: datetime) -> list[str]:
        seconds = str(int(time.replace(tzinfo=UTC).timestamp()))
        return [time.strftime(pattern) if pattern else seconds for _, pattern in self.columns]


def single(pattern, *, specified=False) -> TimeNotation:
    return TimeNotation((("time", pattern),), {"time_format": pattern} if specified else {})


NOTATIONS = [
    *map(single, ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S+00:00", "%Y-%m-%d %H:%M:%S UTC", ""]),
    *(single(each, specified=True) for each in ["%d.%m.%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S", "%d/%m/%y %I:%M:%S %p"]),
    TimeNotation((("date", "%Y-%m-%d"), ("time", "%H:%M:%S"))),
    TimeNotation((("day", "%Y/%m/%d"), ("time", "%H:%M:%S"))),
    TimeNotation((("date", "%d.%m.%Y"), ("time", "%H:%M:%S")), {"time_format": "%d.%m.%Y %H:%M:%S"}),
]
TITLES = ["Export of a logger", "Fahrten (Gruppe 3)", "", "Made by Ana's phone"]
COMMENTS = ["# made by a logger", "#", "# 3 people"]


@dataclass(frozen=True)
class Layout:
    """How a table of records is written as text."""

    separator: str
    decimal: str
    encoding: str
    quoting: int
    end: str
    above: tuple[str, ...]
    excel: bool
    has_header: bool
    time: TimeNotation
    needless: str
    note: bool

    def write(self, records) -> bytes:
        text = io.StringIO()
        needless = {kind: self.separator * (self.needless in (kind, "both")) for kind in ("header", "rows")}
        options = {"delimiter": self.separator, "quoting": self.quoting}
        header = csv.writer(text, lineterminator=needless["header"] + self.end, **options)
        writer = csv.writer(text, lineterminator=needless["rows"] + self.end, **options)
        names = ["user", *(name for name, _ in self.time.columns), "lon", "lat", *(["note"] if self.note else [])]
        rows = [
            [
                user,
                *self.time.values(time),
                *(f"{number:.6f}".replace(".", self.decimal) for number in place),
                *(["Straße"] if self.note else []),
            ]
            for user, time, *place in records
        ]
        text.write("".join(line + self.end for line in self.above))
        if self.excel:
            text.write(f"sep={self.separator}{self.end}")
        if self.has_header:
            header.writerow(names)
        writer.writerows(rows)
        return text.getvalue().encode(self.encoding)

    def options(self) -> dict:
        """What cannot be detected."""
        names = ["user", *(name for name, _ in self.time.columns), "lon", "lat", *(["note"] if self.note else [])]
        options = dict(self.time.options)
        if not self.has_header:
            options |= {"columns": names, "separator": self.separator}
        if not self.encoding.startswith("utf"):
            options["encoding"] = self.encoding
        return options


@st.composite
def layouts(draw) -> Layout:
    separator, decimal = draw(st.sampled_from([",.", ";.", ";,", "\t.", "\t,", "|.", "|,"]))
    above = draw(st.one_of(st.just([]), st.lists(st.sampled_from(TITLES), max_size=3), st.permutations(COMMENTS)))
    has_header = draw(st.booleans()) or bool(above)
    is_plain = has_header and not above
    return Layout(
        separator=separator,
        decimal=decimal,
        encoding=draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"])),
        quoting=draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])),
        end=draw(st.sampled_from(["\n", "\r\n"])),
        above=tuple(above),
        excel=is_plain and draw(st.booleans()),
        has_header=has_header,
        time=draw(st.sampled_from(NOTATIONS)),
        needless=draw(st.sampled_from(["none", "header", "rows", "both"])) if has_header else "none",
        note=draw(st.booleans()),
    )


records = st.lists(
    st.tuples(
        st.sampled_from(["ana", "Zoé", "Jürgen W.", "a;b", "x,y", 'q"q', "7"]),
        st.integers(0, 3 * 86_400).map(lambda seconds: SUMMER + timedelta(seconds=seconds)),
        st.floats(-179, 179).map(lambda x: round(x, 6)),
        st.floats(-80, 80).map(lambda y: round(y, 6)),
    ),
    min_size=3,
    max_size=12,
)


@given(records=records, layout=layouts(), zone=st.sampled_from([None, PARIS]))
@pytest.mark.filterwarnings("ignore:read_table took the numbers")
def test_text_is_read_to_the_records_that_were_written(records, layout, zone, tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "table.csv"
    path.write_bytes(layout.write(records))
    traces = pg.read_table(path, tz=zone, as_traces=True, **layout.options())
    pattern = layout.time.columns[-1][1]
    is_utc = not pattern or pattern.endswith(("Z", "UTC", "+00:00"))
    origin = UTC if is_utc or zone is None else zone

    def nanoseconds(time: datetime) -> int:
        return round(time.replace(tzinfo=origin).timestamp()) * 10**9

    expected = sorted(records, key=lambda record: (record[0], record[1]))
    found = np.repeat([str(user) for user in traces.users], traces.counts).tolist()
    assert found == [user for user, *_ in expected]
    assert traces.times.tolist() == [nanoseconds(time) for _, time, *_ in expected]
    x, y = traces.coordinates()
    np.testing.assert_allclose(x, [record[2] for record in expected], rtol=0, atol=1e-9)
    np.testing.assert_allclose(y, [record[3] for record in expected], rtol=0, atol=1e-9)
    assert (traces.time_format.zone is None) == (zone is None and not is_utc)


GOOD = "a,2024-03-04T08:00:00Z,4.8,45.7"
blocks = st.lists(st.sampled_from([GOOD, "", '"a\nb"' + GOOD[1:]]), max_size=6)


@given(
    above=st.sampled_from([[], ["Title"], ["Title", ""], ["", "Title"], ["", ""], ["# a", "# b"], ["sep=,"]]),
    before=blocks,
    after=blocks,
    end=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    has_header=st.booleans(),
)
def test_a_line_that_does_not_fit_has_the_number_of_an_editor(
    above, before, after, end, encoding, has_header, tmp_path_factory
):
    if not has_header:
        above = [line for line in above if not line or line == "sep=,"]
    head = [*above, *(["user,time,lon,lat"] if has_header else [])]
    lines = [*head, GOOD, GOOD, *before, f"{GOOD},5", *after, GOOD]
    text = "\n".join([*lines, ""])
    number = "\n".join(lines[: -len(after) - 1]).count("\n") + 1  # in an editor
    path = tmp_path_factory.mktemp("ragged") / "table.csv"
    path.write_bytes(text.replace("\n", end).encode(encoding))
    options = {} if has_header else {"columns": "user,time,lon,lat"}
    with pytest.raises(ValueError, match=rf"a line holds 5 values \(line {number}\)"):
        pg.read_table(path, **options)
    with pytest.warns(UserWarning, match=rf"first at line {number} of"):
        traces = pg.read_table(path, errors="skip", as_traces=True, **options)
    assert traces.records == 3 + sum(bool(line) for line in [*before, *after])
