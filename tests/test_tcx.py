"""TCX: the records of activities, their breaks, and what is refused."""

import gzip
from datetime import datetime
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

import promesse_geo as pg
from promesse_geo.io.registry import guess_format

NEW = "http://www.garmin.com/xmlschemas/TrainingCenterDatabase/v2"


def tcx(body: str, *, space: str = f'xmlns="{NEW}"', head: str = '<?xml version="1.0" encoding="UTF-8"?>\n') -> str:
    return f"{head}<TrainingCenterDatabase {space}>{body}</TrainingCenterDatabase>"


def point(second: int = 0, *, lat="45.75", lon="4.84", time: str | None = None, more: str = "") -> str:
    when = f"2024-03-04T08:00:{second:02}Z" if time is None else time
    place = f"<Position><LatitudeDegrees>{lat}</LatitudeDegrees><LongitudeDegrees>{lon}</LongitudeDegrees></Position>"
    return f"<Trackpoint>{f'<Time>{when}</Time>' if when else ''}{place if lat else ''}{more}</Trackpoint>\n"


def activity(*laps) -> str:
    """An activity of laps, which are lists of tracks, which are lists of points."""
    tracks = ("".join(f"<Track>\n{''.join(track)}</Track>" for track in lap) for lap in laps)
    inner = "".join(f'<Lap StartTime="2024-03-04T08:00:00Z"><Calories>1</Calories>{each}</Lap>' for each in tracks)
    return f'<Activity Sport="Biking"><Id>2024-03-04T08:00:00Z</Id>{inner}</Activity>'


def read(folder, content: str | bytes, name="ride.tcx", **options) -> pg.Traces:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return pg.read_file(path, **options, as_traces=True)


EXTENSIONS = (
    "<AltitudeMeters>170</AltitudeMeters><HeartRateBpm><Value>120</Value></HeartRateBpm>"
    '<Extensions><TPX xmlns="http://www.garmin.com/xmlschemas/ActivityExtension/v2"><Speed>3.1</Speed>'
    "<Time>1999-01-01T00:00:00Z</Time></TPX></Extensions>"
)
TWO = activity([[point(0, more=EXTENSIONS), point(1, lat="45.7501")]])
SECONDS = {
    "two points": (tcx(f"<Activities>{TWO}</Activities>"), [0, 1]),
    "blanks first": ("\n          " + tcx(f"<Activities>{TWO}</Activities>"), [0, 1]),
    "no namespace": (tcx(f"<Activities>{TWO}</Activities>", space=""), [0, 1]),
    "UTF-16": (tcx(f"<Activities>{TWO}</Activities>", head="").encode("utf-16"), [0, 1]),
    "gzip": (gzip.compress(tcx(f"<Activities>{TWO}</Activities>").encode()), [0, 1]),
    "an unbound prefix": (tcx(f"<Activities>{TWO}</Activities>").replace("TPX", "ns3:TPX"), [0, 1]),
    "several sports": (
        tcx(
            "<Activities><MultiSportSession><Id>a</Id>"
            f"<FirstSport>{activity([[point(3)]])}</FirstSport><NextSport>{activity([[point(4)]])}</NextSport>"
            "</MultiSportSession></Activities>"
        ),
        [3, 4],
    ),
    "fractions and offsets": (
        tcx(f"<Activities>{activity([[point(time='2024-03-04T09:00:07.000+01:00')]])}</Activities>"),
        [7],
    ),
}


@pytest.mark.parametrize("kind", SECONDS)
def test_the_points_of_activities_are_read(kind, tmp_path):
    content, seconds = SECONDS[kind]
    traces = read(tmp_path, content)
    assert guess_format(tmp_path / "ride.tcx") == "tcx"
    start = int(np.datetime64("2024-03-04T08:00:00", "ns").astype(int))
    assert ((traces.times - start) // 10**9).tolist() == seconds
    assert traces.users.tolist() == ["ride"]


def test_a_track_is_a_segment_and_an_activity_a_track(tmp_path):
    body = activity([[point(0), point(1)], [point(2)]], [[point(3)]]) + activity([[point(4), point(5)]])
    traces = read(tmp_path, tcx(f"<Activities>{body}</Activities>"))
    assert traces.segment_numbers.tolist() == [0, 0, 1, 2, 3, 3]
    frame = pg.read_file(tmp_path / "ride.tcx", user="track", as_traces=True)
    frame = frame.to_frame() if isinstance(frame, pg.Traces) else frame
    assert frame["user"].tolist() == ["ride-1"] * 4 + ["ride-2"] * 2


def test_points_without_a_place_and_those_of_courses_are_counted(tmp_path):
    body = f"<Activities>{activity([[point(0), point(1, lat=None), point(2, time='')]])}</Activities>"
    course = f"\n<Courses><Course><Name>plan</Name><Track>{point(9)}{point(10)}</Track></Course></Courses>"
    with pytest.warns(UserWarning, match="dropped") as caught:
        assert read(tmp_path, tcx(body + course)).records == 1
    (message,) = (str(warning.message) for warning in caught)
    for words in ("1 record (no coordinates; first at track point 2", "(no time", "2 records (of a course"):
        assert words in message


REFUSED = {
    "a course alone": (
        tcx(f"<Courses><Course><Track>{point(9)}</Track></Course></Courses>"),
        "no track points in the laps of an activity. 1 point is of a course",
    ),
    "no points": (tcx("<Activities/>"), "no track points"),
    "indoors": (tcx(f"<Activities>{activity([[point(0, lat=None)] * 2])}</Activities>"), "no track point with both"),
    "no times": (tcx(f"<Activities>{activity([[point(time='')] * 2])}</Activities>"), "has no times"),
    "cut": (tcx(f"<Activities>{TWO}</Activities>")[:-30], r"cut or damaged \(line"),
    "a decimal comma": (
        tcx(f"<Activities>{activity([[point(0), point(1, lat='45,7')]])}</Activities>"),
        "track point 2 has a coordinate that is no number",
    ),
    "a document type": (
        tcx(f"<Activities>{TWO}</Activities>", head="<!DOCTYPE a>"),
        r"declares a document type \(DOCTYPE\), and TCX has none",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_other_files_are_refused_with_the_reason(kind, tmp_path):
    content, words = REFUSED[kind]
    with pytest.raises(ValueError, match=words):
        read(tmp_path, content, format="tcx")


def twin(content: str) -> list[tuple[int, float, float, int]]:
    """Nanoseconds, longitude, latitude and segment of a tree's complete points, by time."""
    rows, spaces = [], {"t": NEW}
    root = ElementTree.fromstring(content.encode())
    for number, track in enumerate(root.findall("t:Activities/t:Activity/t:Lap/t:Track", spaces)):
        for at in track.findall("t:Trackpoint", spaces):
            when = at.find("t:Time", spaces)
            place = [at.find(f"t:Position/t:{name}Degrees", spaces) for name in ("Longitude", "Latitude")]
            if when is not None and None not in place:
                seconds = datetime.fromisoformat(when.text).timestamp()
                rows.append((round(seconds * 10**9), float(place[0].text), float(place[1].text), number))
    return sorted(rows, key=lambda row: row[0])


@pytest.mark.filterwarnings("ignore:read_file dropped")
@examples(50)
@given(
    st.lists(
        st.lists(
            st.lists(
                st.tuples(st.integers(0, 59), st.sampled_from(["45.75", "-12.5", "90", None]), st.booleans()),
                max_size=4,
            ),
            max_size=3,
        ),
        max_size=3,
    )
)
def test_records_are_those_of_a_tree(tmp_path_factory, laps):
    points = [[[point(s, lat=lat, time=None if timed else "") for s, lat, timed in t] for t in lap] for lap in laps]
    content = tcx(f"<Activities>{activity(*points)}</Activities>")
    expected = twin(content)
    folder = tmp_path_factory.mktemp("tcx")
    if not expected:
        with pytest.raises(ValueError, match="has no"):
            read(folder, content)
        return
    traces = read(folder, content)
    assert traces.times.tolist() == [row[0] for row in expected]
    x, y = traces.space.coordinates(traces.points)
    assert np.allclose(np.c_[x, y], [row[1:3] for row in expected], atol=1e-9)
