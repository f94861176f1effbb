"""KML and KMZ: tracks and placemarks with times, and what is refused."""

import io
import zipfile

import numpy as np
import pytest
from format_samples import KML, zipped

import promesse_geo as pg
from promesse_geo.io.registry import guess_format

SPACES = 'xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2"'


def kml(body: str, *, spaces: str = SPACES, head: str = '<?xml version="1.0" encoding="UTF-8"?>\n') -> str:
    return f"{head}<kml {spaces}><Document>{body}</Document></kml>"


def track(*points, prefix: str = "gx:", together: bool = False) -> str:
    """A track of (second, place) points: times first, or each before its place."""
    whens = [f"<when>2024-03-04T08:00:{second:02}Z</when>\n" for second, _ in points]
    coords = [f"<{prefix}coord>{place}</{prefix}coord>\n" for _, place in points]
    pairs = [each for pair in zip(whens, coords, strict=True) for each in pair] if together else whens + coords
    return f"<{prefix}Track>{''.join(pairs)}</{prefix}Track>"


def mark(inner: str) -> str:
    return f"<Placemark><name>x</name>{inner}</Placemark>\n"


def stamped(second: int, place: str = "4.84,45.75,170") -> str:
    return mark(
        f"<TimeStamp><when>2024-03-04T08:00:{second:02}Z</when></TimeStamp>"
        f"<Point><coordinates>\n {place} \n</coordinates></Point>"
    )


def kmz(**members: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("images/pin.png", b"\x89PNG")
        for name, content in members.items():
            archive.writestr(f"{name}.kml", content)
    return packed.getvalue()


def read(folder, content: str | bytes, name="trip.kml", **options) -> pg.Traces:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return pg.read_file(folder / name, **options, as_traces=True)


A, B, C = (0, "4.84 45.75 170"), (1, "4.85 45.76 171"), (2, "4.86 45.77 0")
LINE = mark("<LineString><coordinates>4.84,45.75 4.85,45.76</coordinates></LineString>")
SPAN = mark(
    "<TimeSpan><begin>2024-03-04T08:00:01Z</begin><end>2024-03-04T09:00:00Z</end></TimeSpan>"
    "<Point><coordinates>4.85,45.76</coordinates></Point>"
)
KINDS = {
    "a track": ("kml", kml(mark(track(A, B, C))), None),
    "times and places in turn": ("kml", kml(mark(track(A, B, C, together=True))), None),
    "KML 2.3": ("kml", kml(mark(track(A, B, C, prefix=""))), None),
    "an unbound prefix": ("kml", kml(mark(track(A, B, C)), spaces=""), None),
    "UTF-16": ("kml", kml(mark(track(A, B, C)), head="").encode("utf-16"), None),
    "several tracks": (
        "kml",
        kml(mark(f"<gx:MultiTrack><gx:interpolate>0</gx:interpolate>{track(A, B)}{track(C)}</gx:MultiTrack>")),
        [0, 0, 1],
    ),
    "tracks of several placemarks": ("kml", kml(f"<Folder>{mark(track(A))}</Folder>{mark(track(B, C))}"), [0, 1, 1]),
    "placemarks with times": ("kml", kml(f"<Folder>{stamped(0)}{SPAN}</Folder>{stamped(2, '4.86,45.77')}"), None),
    "a KMZ": ("kmz", kmz(doc=kml(mark(track(A, B, C)))), None),
    "a KMZ of several files": (
        "kmz",
        kmz(a=kml(mark(track(B))), doc=kml(mark(track(A))), b=kml(mark(track(C)))),
        [0, 1, 2],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_positions_with_times_are_read(kind, tmp_path):
    ending, content, segments = KINDS[kind]
    traces = read(tmp_path, content, f"trip.{ending}")
    assert guess_format(tmp_path / f"trip.{ending}") == "kml"
    assert traces.users.tolist() == ["trip"]
    start = int(np.datetime64("2024-03-04T08:00:00", "ns").astype(int))
    assert ((traces.times - start) // 10**9).tolist() == [0, 1, 2]
    x, y = traces.space.coordinates(traces.points)
    assert np.allclose(x, [4.84, 4.85, 4.86], atol=1e-12)
    assert np.allclose(y, [45.75, 45.76, 45.77], atol=1e-12)
    assert traces.segment_numbers.tolist() == (segments or [0, 0, 0])


def test_each_placemark_with_tracks_is_a_track(tmp_path):
    content = kml(mark(f"<gx:MultiTrack>{track(A)}{track(B)}</gx:MultiTrack>") + mark(track(C)))
    traces = read(tmp_path, content, user="track")
    assert dict(zip(traces.users.tolist(), traces.counts.tolist(), strict=True)) == {"trip-1": 2, "trip-2": 1}


def test_tracks_of_a_kmz_are_numbered_from_those_of_its_document_on(tmp_path):
    content = kmz(a=kml(mark(track(B))), doc=kml(mark(track(A))), b=kml(mark(track(C))))
    traces = read(tmp_path, content, "trip.kmz", user="track")
    assert traces.users.tolist() == ["trip-1", "trip-2", "trip-3"]
    assert np.allclose(traces.space.coordinates(traces.points)[0], [4.84, 4.85, 4.86], atol=1e-12)


def test_what_is_left_out_is_counted(tmp_path):
    whens = "<when>2024-03-04</when><when>2024-03-04T08:00:09Z</when>"
    lost = f"<gx:Track>{whens}<gx:coord>1 2</gx:coord><gx:coord/></gx:Track>"
    with pytest.warns(UserWarning, match="dropped") as caught:
        traces = read(tmp_path, kml(mark(track(A, B)) + LINE + stamped(5) + mark(lost)))
    assert traces.records == 2
    (message,) = (str(warning.message) for warning in caught)
    for words in ("no coordinates", "no time", "a point or line without a time", "a placemark beside tracks"):
        assert f"1 record ({words}" in message


REFUSED = {
    "lines alone": (kml(LINE), "no positions with times .* 1 point or line has none"),
    "nothing": (kml(""), "no positions with times"),
    "a link": (kml("<NetworkLink><Link><href>a.kml</href></Link></NetworkLink>"), "It links to other files"),
    "a time without a place": (
        kml(mark(track(A).replace("</gx:Track>", "<when>2024-03-04T08:00:09Z</when></gx:Track>"))),
        "the track that ends at line .* has 2 times and 1 position",
    ),
    "dates alone": (kml(mark(track(A).replace("T08:00:00Z", ""))), "has no times"),
    "decimal commas": (kml(mark(track((0, "4,84 45,75 0")))), "point 1 has a coordinate that is no number"),
    "cut": (kml(mark(track(A)))[:-12], r"cut or damaged \(line"),
    "GPX": ("<gpx/>", "is not KML: it has no element <kml>"),
    "a document type": (kml(mark(track(A)), head="<!DOCTYPE kml>"), "KML has none"),
    "a cut KMZ": (kmz(doc=kml(mark(track(A))))[:-40], "KMZ that is cut"),
    "a KMZ without KML": (kmz(), "without a KML file"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_other_files_are_refused_with_the_reason(kind, tmp_path):
    content, words = REFUSED[kind]
    with pytest.raises(ValueError, match=words):
        read(tmp_path, content, format="kml")


def test_a_damaged_kmz_is_skipped(tmp_path):
    (tmp_path / "a.kmz").write_bytes(kmz(doc=kml(mark(track(A)))))
    whole = kmz(doc=kml(mark(track(A, B, C))))
    (tmp_path / "b.kmz").write_bytes(whole[:120] + bytes(8) + whole[128:])
    with pytest.warns(UserWarning, match=r"1 file .*b\.kmz"):
        assert pg.read_file(tmp_path, errors="skip", as_traces=True).users.tolist() == ["a"]


def test_a_kmz_that_grows_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(pg.io.kml, "size_limit", lambda size: 100)
    monkeypatch.setattr(pg.io.kml, "too_large", lambda name, size: f"{name} is too large")
    with pytest.raises(ValueError, match=r"trip\.kmz' is too large"):
        read(tmp_path, kmz(doc=kml(mark(track(A)))), "trip.kmz")


@pytest.mark.parametrize("ending", [".kmz", ".zip"])
def test_an_archive_whose_directory_lies_outside_is_damaged(ending, tmp_path):
    content = bytearray(zipped({"doc.kml": KML}))
    end = content.find(b"PK\5\6")
    content[end + 16 : end + 20] = (10**6).to_bytes(4, "little")
    path = tmp_path / f"a{ending}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"'.*a{ending}'.*damaged"):
        pg.read_file(path)
