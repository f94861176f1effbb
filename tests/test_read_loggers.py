"""OwnTracks, Overland, Polarsteps, NMEA and IGC are read as their layouts say; damage is an error or counted."""

import json
import warnings
from contextlib import suppress
from functools import partial, reduce
from operator import xor

import pandas as pd
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

import promesse_geo as pg
from promesse_geo.io import igc, nmea, overland, owntracks, polarsteps
from promesse_geo.io.registry import guess_format


def save(folder, content, name="log"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows(path, **named):
    """(user, time in UTC, latitude, longitude) of each record."""
    frame = pg.read_file(path, **named, as_traces=True).to_frame()
    times = pd.DatetimeIndex(frame.time).strftime("%Y-%m-%d %H:%M:%S.%f").str.slice(0, 23)
    places = frame.geometry.y.round(7), frame.geometry.x.round(7)
    return list(zip(frame.user.astype(str), times, *places, strict=True))


def message(seconds, latitude=45.7, longitude=4.8, **others):
    return {"_type": "location", "acc": 9, "lat": latitude, "lon": longitude, "tst": 1_709_539_200 + seconds} | others


def rec(*messages):
    lines = (f"2024-03-04T08:00:09Z\t*                 \t{json.dumps(each)}" for each in messages)
    return "".join(f"{line}\n" for line in lines)


MORNING = "2024-03-04 08:0"


def test_the_lines_of_owntracks_are_read(tmp_path):
    other = '2024-03-04T08:00:09Z\tlwt               \toffline\n2024-03-04T08:00:09Z\tsteps\t{"_type": "steps"}\n'
    path = save(tmp_path, rec(message(0, tid="an")) + other + rec(message(90, 45.8, -4.9, tid="an")), "2024-03.rec")
    assert guess_format(path) == "owntracks"
    expected = [("an", f"{MORNING}0:00.000", 45.7, 4.8), ("an", f"{MORNING}1:30.000", 45.8, -4.9)]
    assert rows(path) == expected
    assert rows(path, user="file") == [("2024-03", *row[1:]) for row in expected]


def test_the_user_of_owntracks_is_that_of_the_topic_then_the_tracker_then_the_file(tmp_path):
    messages = [
        message(0, topic="owntracks/ana/phone", tid="ph"),
        message(60, tid="be"),
        message(120),
        message(180, tid=""),
    ]
    path = save(tmp_path, "\n".join(map(json.dumps, messages)), "cara.jsonl")
    assert [row[0] for row in rows(path)] == ["ana", "be", "cara", "cara"]
    answer = save(tmp_path, json.dumps({"count": 4, "data": messages}), "answer/cara.json")
    array = save(tmp_path, json.dumps(messages), "array/cara.json")
    assert rows(answer) == rows(array) == rows(path)
    assert [row[0] for row in rows(path, users=["ana", "cara"])] == ["ana", "cara", "cara"]


def test_topics_of_owntracks_without_user_and_device_name_nobody(tmp_path):
    topics = ["owntracks/ana/phone", "owntracks/ana", "phones", ""]
    messages = [message(60 * number, topic=topic, tid="be") for number, topic in enumerate(topics)]
    path = save(tmp_path, "\n".join(map(json.dumps, messages)), "cara.jsonl")
    assert [row[:2] for row in rows(path)] == [
        ("ana", f"{MORNING}0:00.000"),
        *(("be", f"{MORNING}{minute}:00.000") for minute in (1, 2, 3)),
    ]


def test_the_store_of_owntracks_is_read_by_folders(tmp_path):
    for person in ("ana", "ben"):
        for month in ("02", "03"):
            save(tmp_path, rec(message(int(month), tid=person[:1])), f"rec/{person}/phone/2024-{month}.rec")
    assert [row[0] for row in rows(tmp_path)] == ["a", "a", "b", "b"]
    for number, path in enumerate(sorted(tmp_path.rglob("*.rec"))):
        path.write_text(rec(message(0)) + rec(message(number, tid="x" if "03" in path.name else "y")))
    with pytest.warns(UserWarning, match=r"4 records \(no device, and another file has the same name"):
        assert {row[0] for row in rows(tmp_path)} == {"x", "y"}


def test_two_people_with_the_same_tracker_are_reported(tmp_path):
    for person in ("ana", "ben"):
        save(tmp_path, rec(message(0, tid="ph"), message(60, tid="ph")), f"{person}/2024-03.rec")
    with pytest.warns(UserWarning, match="In 1 trace files overlap in time"):
        assert {row[0] for row in rows(tmp_path)} == {"ph"}
    assert [row[0] for row in rows(tmp_path, user="folder")] == ["ana", "ana", "ben", "ben"]


def test_encrypted_messages_of_owntracks_are_counted(tmp_path):
    path = save(tmp_path, rec(message(0, tid="an"), {"_type": "encrypted", "data": "x"}), "2024-03.rec")
    with pytest.warns(UserWarning, match=r"1 record \(encrypted; first at line 2 of"):
        assert len(rows(path)) == 1


def feature(seconds, longitude=4.8, latitude=45.7, **others):
    time = pd.Timestamp(1_709_539_200 + seconds, unit="s", tz="America/Los_Angeles").strftime("%Y-%m-%dT%H:%M:%S%z")
    point = {"type": "Point", "coordinates": [longitude, latitude]}
    return {"type": "Feature", "geometry": point, "properties": {"timestamp": time, "speed": 4} | others}


def test_the_batches_of_overland_are_read(tmp_path):
    batches = [
        {"locations": [feature(0, device_id="ana"), feature(60, 4.9, device_id="ana")], "current": feature(60)},
        {"locations": [feature(120, -5.0, device_id=""), feature(180)], "trip": {"start": "2024"}},
    ]
    path = save(tmp_path, "\n".join(map(json.dumps, batches)), "phone.json")
    assert guess_format(path) == "overland"
    assert rows(path) == [
        ("ana", f"{MORNING}0:00.000", 45.7, 4.8),
        ("ana", f"{MORNING}1:00.000", 45.7, 4.9),
        ("phone", f"{MORNING}2:00.000", 45.7, -5.0),
        ("phone", f"{MORNING}3:00.000", 45.7, 4.8),
    ]
    assert {row[0] for row in rows(path, user="file")} == {"phone"}


def test_the_locations_of_polarsteps_are_read(tmp_path):
    locations = [{"lat": 45.7, "lon": 4.8, "time": 1709539200.55}, {"lat": -45, "lon": 5, "time": 1709539260}]
    path = save(tmp_path, json.dumps({"locations": locations}), "Alps/locations.json")
    assert guess_format(path) == "polarsteps"
    expected = [("Alps", f"{MORNING}0:00.550", 45.7, 4.8), ("Alps", f"{MORNING}1:00.000", -45.0, 5.0)]
    assert rows(path, user="folder") == expected


def sentence(text):
    return f"${text}*{reduce(xor, text.encode()):02X}\r\n"


def rmc(clock, date="040324", state="A"):
    return sentence(f"GPRMC,{clock},{state},4542.0000,N,00448.0000,W,0.1,,{date},,,A")


def gga(clock, quality=1):
    return sentence(f"GNGGA,{clock},4543.5000,S,00449.2500,E,{quality},08,0.9,200.0,M,47.0,M,,")


def nmea_rows(folder, text):
    return [row[1:] for row in rows(save(folder, text, "boat.nmea"))]


RMC_PLACE, GGA_PLACE = (45.7, -4.8), (-45.725, 4.8208333)


def test_positions_of_nmea_are_those_of_rmc_and_of_gga_at_other_times(tmp_path):
    text = "$PMTK011,MTKGPS*08\r\n" + gga("080000.00") + rmc("080000.00") + sentence("GPGSV,1,1,00")
    assert nmea_rows(tmp_path, text + gga("080001.250")) == [
        ("2024-03-04 08:00:00.000", *RMC_PLACE),
        ("2024-03-04 08:00:01.250", *GGA_PLACE),
    ]


def test_midnight_in_nmea_begins_the_next_day(tmp_path):
    text = gga("235958") + rmc("000000", "050324") + gga("235959") + gga("000001")
    assert [row[0][:19] for row in nmea_rows(tmp_path, text)] == [
        "2024-03-04 23:59:58",
        "2024-03-04 23:59:59",
        "2024-03-05 00:00:00",
        "2024-03-05 00:00:01",
    ]
    text = rmc("235959") + gga("000001")
    assert [row[0][:10] for row in nmea_rows(tmp_path, text)] == ["2024-03-04", "2024-03-05"]


def test_many_days_of_gga_follow_the_dates_of_zda(tmp_path):
    days = [sentence(f"GPZDA,120000.00,{day:02},03,2024,00,00") + gga("120001") for day in (4, 5, 9)]
    assert [row[0][:10] for row in nmea_rows(tmp_path, "".join(days))] == ["2024-03-04", "2024-03-05", "2024-03-09"]


@pytest.mark.parametrize("quality", [0, ""])
def test_gga_sentences_without_a_fix_are_void_though_they_have_a_place(tmp_path, quality):
    text = rmc("080000.00") + gga("080001.00", quality) + gga("080002.00", 2)
    with pytest.warns(UserWarning, match=r"1 record \(no fix \(void\); first at line 2 of"):
        found = nmea_rows(tmp_path, text)
    assert found == [("2024-03-04 08:00:00.000", *RMC_PLACE), ("2024-03-04 08:00:02.000", *GGA_PLACE)]


def test_void_fixes_and_wrong_checksums_of_nmea_are_counted(tmp_path):
    bad = rmc("080005").replace("4542", "4552")
    text = rmc("", "", "V") + gga("", 0) + rmc("080000") + rmc("080001", state="V") + gga("080001", 0) + bad
    with pytest.warns(UserWarning, match="read_file dropped") as caught:
        assert len(nmea_rows(tmp_path, text + rmc("080006")[:-5] + "\r\n" + gga("080007"))) == 2
    words = str(caught[0].message)
    assert "2 records (no fix (void); first at line 1 of" in words
    assert "1 record (a checksum that does not match; first at line 6" in words
    assert "1 record (no checksum; first at line 7" in words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (gga("080000"), "no date"),
        (rmc("080000", state="V"), "no position"),
        (rmc("080000").replace("A,4542", "A,4543"), "checksum"),
        (sentence("GPGSV,1,1,00"), "no RMC or GGA"),
        (sentence("GPRMC,080000,A,4560.0,N,00448.0,W,0,0,040324,,,A"), "no coordinates"),
        (sentence("GPRMC,080000,A,4542.0,N,00448.0,W,0,0,310224,,,A"), "no date"),
        (sentence("GPRMC,250000,A,4542.0,N,00448.0,W,0,0,040324,,,A"), "no date"),
    ],
)
def test_nmea_without_a_fix_is_an_error(text, words, tmp_path):
    with pytest.raises(ValueError, match=words) as caught:
        pg.read_file(save(tmp_path, text, "boat.nmea"), format="nmea", as_traces=True)
    assert "boat.nmea" in str(caught.value)


def test_years_of_two_digits(tmp_path):
    assert nmea_rows(tmp_path, rmc("120000", "311280") + rmc("120000", "010179"))[0][0][:10] == "1980-12-31"
    assert nmea_rows(tmp_path, rmc("120000", "010179"))[0][0][:10] == "2079-01-01"


def fix(clock, valid="A", rest=""):
    return f"B{clock}4542000N00448000W{valid}0058700558{rest}\r\n"


def igc_rows(folder, text):
    path = save(folder, text, "flight.igc")
    assert guess_format(path) == "igc"
    return [row[1:] for row in rows(path)]


@pytest.mark.parametrize("date", ["HFDTE040324", "HFDTEDATE:040324,01", "HFDTEDATE: 040324", "HODTE040324"])
def test_fixes_of_igc_are_read(date, tmp_path):
    text = (
        f"AXXX001\r\n{date}\r\nHFPLTPILOT:Ana\r\nI013638FXA\r\n{fix('080000')}LXXX B record\r\n{fix('080004')}G123\r\n"
    )
    assert igc_rows(tmp_path, text) == [
        ("2024-03-04 08:00:00.000", 45.7, -4.8),
        ("2024-03-04 08:00:04.000", 45.7, -4.8),
    ]


def test_midnight_in_igc_begins_the_next_day(tmp_path):
    first = f"AXXX001\r\nHFDTE310124\r\n{fix('235959')}{fix('000001')}{fix('000000')}{fix('235958')}"
    second = f"HFDTE050224\r\n{fix('080000')}{fix('080001', 'V')}Bxx\r\n"
    with pytest.warns(UserWarning, match="read_file dropped") as caught:
        times = [row[0][:19] for row in igc_rows(tmp_path, first + second)]
    assert times == [
        f"2024-{time}" for time in ("01-31 23:59:59", "02-01 00:00:00", "02-01 00:00:01", "02-01 23:59:58")
    ] + ["2024-02-05 08:00:00"]
    assert "1 record (no fix in three dimensions (V); first at line 9" in str(caught[0].message)
    assert "1 record (B record that is cut or damaged; first at line 10" in str(caught[0].message)


def test_more_digits_of_igc_are_read(tmp_path):
    text = f"AXXX001\r\nHFDTE040324\r\nI033637LAD3839LOD4042TDS\r\n{fix('080000', rest='6012250')}"
    assert igc_rows(tmp_path, text) == [
        ("2024-03-04 08:00:00.250", round(45 + 42.0006 / 60, 7), round(-(4 + 48.00012 / 60), 7))
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("AXXX001\r\n", "no fix"),
        ("AXXX001\r\n" + fix("080000"), "no date .* line 2"),
        ("AXXX001\r\nHFDTE310224\r\n" + fix("080000"), "no date"),
        ("AXXX001\r\nHFDTE040324\r\n" + fix("080000", "V"), "no position"),
        ("AXXX001\r\nHFDTE040324\r\n" + fix("250000"), "no time"),
        ("AXXX001\r\nHFDTE040324\r\n" + fix("080000").replace("4542000", "4560000"), "no coordinates"),
    ],
)
def test_igc_without_a_fix_is_an_error(text, words, tmp_path):
    with pytest.raises(ValueError, match=words) as caught:
        pg.read_file(save(tmp_path, text, "flight.igc"), format="igc", as_traces=True)
    assert "flight.igc" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "format", "words"),
    [
        (rec(message(0))[:-9], "owntracks", "line 1 is not JSON"),
        (rec(message(0)) + "2024-03-0", "owntracks", "line 2 is not a time"),
        (json.dumps(message(0)) + "\n" + json.dumps(message(0))[:-9], "owntracks", "line 2"),
        (json.dumps({"locations": [feature(0)]})[:-9], "overland", "cut or damaged"),
        (json.dumps({"locations": [feature(0) | {"geometry": None}]}), "overland", "no coordinates"),
        ('{"locations": [{"lat": 1, "lon": 2, "time": 3},', "polarsteps", "line 1"),
        ('{"locations": [{"lat": NaN, "lon": Infinity, "time": 3}]}', "polarsteps", "no position"),
    ],
)
def test_damage_is_an_error_with_the_file_and_the_place(text, format, words, tmp_path):
    path = save(tmp_path, text, "phone.json")
    with pytest.raises(ValueError, match=words) as caught:
        pg.read_file(path, format=format, as_traces=True)
    assert repr(str(path)) in str(caught.value)


NAMES = (
    "locations data _type location lat lon tst tid topic type geometry coordinates properties timestamp device_id time"
)
KEYS = st.sampled_from(NAMES.split())
LEAVES = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    st.sampled_from([10**400, 1709539200, "location", "Point", "Feature", "encrypted", "\ud800", "a/b/c", "1e999"]),
    st.sampled_from(["2024-03-04T08:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=30,
)
PARSERS = [
    partial(owntracks._parse, by_device=True),
    partial(overland._parse, by_device=True),
    polarsteps._parse,
    nmea._parse,
    igc._parse,
]


def parse_all(parse, content):
    with suppress(ValueError):
        parts = list(parse("a.json", content, "ana"))
        assert sum(len(part.times) for part in parts) > 0
        assert all(part.user.encode() for part in parts)


@given(VALUES, st.sampled_from(PARSERS))
@examples(300)
def test_whatever_json_holds_only_value_errors_come(value, parse):
    parse_all(parse, json.dumps(value).encode())
    parse_all(parse, json.dumps({"locations": [value, {"lat": value, "lon": value, "time": value}]}).encode())
    parse_all(parse, rec(value, {"_type": "location", "lat": 1, "lon": value, "tst": value, "tid": value}).encode())


LINES = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.sampled_from([b"HFDTE040324", b"B0800004542000N00448000WA0058700558", b"I013699TDS", b"I023600LAD3801LOD"]),
        st.sampled_from(
            [gga("235959").encode(), rmc("000000").encode(), sentence("GPZDA,1,\xb2,\xb9,,").encode("latin-1")]
        ),
        st.text("0123456789.,NSEWAV", max_size=30).map(lambda text: sentence(f"GPRMC,{text}").encode()),
        st.text("0123456789NSEWAV", max_size=30).map(lambda text: f"B{text}".encode()),
    ),
    max_size=8,
)


@given(LINES, st.sampled_from(PARSERS))
@examples(300)
def test_whatever_lines_hold_only_value_errors_come(lines, parse):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse_all(parse, b"\r\n".join(lines))


def test_names_that_are_no_text_stay_different(tmp_path):
    record = '{{"user": "{}", "time": "2024-03-04T0{}:00:00Z", "lon": 4, "lat": 45}}'
    text = f"[{record.format(chr(92) + 'ud800', 8)}, {record.format(chr(92) + 'ud801', 9)}]"
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    assert pg.read_file(tmp_path / "a.json")["user"].nunique() == 2
