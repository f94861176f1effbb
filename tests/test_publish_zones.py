"""Zones and cut ends on the way to a published file: `publish` in Python, and the command line."""

import json
import secrets
import stat
import warnings
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from click.testing import CliRunner
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

import promesse_geo as pg
from promesse_geo.cli import main
from promesse_geo.cli.zones import VARIABLE, read_zones
from promesse_geo.publication.choices import Choices
from promesse_geo.publication.cleaning import owners_of_parts
from promesse_geo.publication.work import protect_raw

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SECRET = secrets.token_hex(32)


@pytest.fixture(scope="module")
def raw():
    return pg.make_city(users=5, days=4, seed=2, recorder="phone")


@pytest.fixture(scope="module")
def homes():
    _, pois = pg.make_city(users=5, days=4, seed=2, return_pois=True, recorder="phone")
    return pois[pois["kind"] == "home"].drop_duplicates("user")[["user", "geometry"]].reset_index(drop=True)


@pytest.fixture(scope="module")
def files(raw, homes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    pg.write(raw, folder / "raw.parquet")
    homes.to_file(folder / "homes.geojson", driver="GeoJSON")
    circles = homes.set_geometry(homes.geometry.to_crs(2154).buffer(400))
    circles.to_parquet(folder / "circles.parquet")
    return folder


def run(*words, **environment):
    return CliRunner(env={VARIABLE: None, **environment}).invoke(main, [*map(str, words)])


def distances_to_homes(safe: gpd.GeoDataFrame, homes: gpd.GeoDataFrame) -> np.ndarray:
    """Metres from each line of a published trace to the nearest home."""
    points = safe.to_crs(2154)
    lines = points.groupby("user").geometry.apply(lambda rows: rows.union_all() if len(rows) < 2 else as_line(rows))
    return gpd.GeoSeries(lines, crs=2154).distance(homes.geometry.to_crs(2154).union_all()).to_numpy()


def as_line(rows: gpd.GeoSeries):
    return gpd.GeoSeries.from_wkt([f"LINESTRING ({', '.join(f'{p.x!r} {p.y!r}' for p in rows)})"])[0]


def test_zones_are_removed_before_all_else_and_hold_in_what_is_published(raw, homes):
    shapes = homes.drop(columns="user").set_geometry(homes.geometry.to_crs(2154).buffer(400))
    for epsilon in (200, 700):  # chords of 700 m would cross zones
        mechanism = pg.Chain([pg.PrivacyZones(zones=shapes), pg.Promesse(epsilon)])
        result = raw.promesse.publish(None, mechanism, tz="Europe/Paris", dry_run=True)
        assert result.passed
        assert distances_to_homes(result.data, homes).min() > 395  # buffers are polygons
        assert result.counts["zone_records"] > 0
        assert result.counts["zone_breaks"] > 0
        assert "in privacy zones (removed)" in str(result)
        assert result.data.attrs["promesse"]["mechanism"] == mechanism.description()


def test_zones_of_users_follow_them_to_their_new_names(raw, homes):
    """Two zones of the first user, at the homes of the first two: the second user is published in his."""
    traces = raw.promesse.traces()
    alone = traces.select(traces.trace_numbers == 0)
    zones = pg.PrivacyZones(500, 0, zones=homes.iloc[:2].assign(user=traces.users[0]))
    nearest = {}
    for name, data in (("alone", alone), ("all", traces)):
        result = pg.publish(data, None, pg.Chain([zones, pg.Promesse(200)]), tz="Europe/Paris", dry_run=True)
        nearest[name] = [distances_to_homes(result.data.to_frame(), homes.iloc[[row]]).min() for row in (0, 1)]
        assert result.counts["zone_records"] == alone.records - zones.protect(alone).records
    assert min(nearest["alone"]) > 499
    assert nearest["all"][1] < 499


def test_every_part_knows_its_owner():
    city = pg.make_city(users=4, days=3, as_traces=True, recorder="phone")
    parts = pg.prepare(city, tz="Europe/Paris", seed=1)
    named = pg.prepare(city, tz="Europe/Paris", keep_user=True)
    owners = owners_of_parts(city, parts)
    times = {
        tuple(named.times[first:last]): named.users[number]
        for number, (first, last) in enumerate(zip(named.offsets, named.offsets[1:], strict=False))
    }
    for number, (first, last) in enumerate(zip(parts.offsets, parts.offsets[1:], strict=False)):
        assert times[tuple(parts.times[first:last])].startswith(city.users[owners[number]])


def test_zones_that_no_record_lies_in_are_reported(raw, homes):
    """Latitude and longitude of homes are exchanged."""
    swapped = homes.set_geometry(gpd.points_from_xy(homes.geometry.y, homes.geometry.x), crs=4326)
    chain = pg.Chain([pg.PrivacyZones(zones=swapped), pg.Promesse(200)])
    with pytest.warns(UserWarning, match="No record lies in a privacy zone"):
        pg.publish(raw, None, chain, tz="Europe/Paris", dry_run=True)


def test_a_user_in_zones_entirely_is_counted(raw):
    traces = raw.promesse.traces()
    x, y = traces.coordinates()
    box = gpd.GeoSeries(gpd.points_from_xy(x[:1], y[:1]), crs=4326).to_crs(2154).buffer(60_000)
    some = gpd.GeoDataFrame({"user": [traces.users[0]]}, geometry=box)
    mechanism = pg.Chain([pg.PrivacyZones(zones=some), pg.Promesse(200)])
    result = pg.publish(traces, None, mechanism, tz="Europe/Paris", dry_run=True)
    assert result.counts["zone_users"] == 1
    assert result.counts["published_users"] == len(traces) - 1
    with pytest.raises(ValueError, match="Nothing is left to publish"):
        pg.publish(traces.select(traces.trace_numbers == 0), None, mechanism, tz="Europe/Paris", dry_run=True)


def test_what_is_recommended_is_named_where_it_is_not_used(raw):
    def notes(mechanism):
        return " ".join(raw.promesse.publish(None, mechanism, tz="Europe/Paris", dry_run=True).notes)

    assert "--recommended people" in notes(pg.Promesse(200))
    assert "--recommended people" in notes(pg.Chain([pg.PrivacyZones(seed=SECRET), pg.Promesse(200)]))
    assert "--recommended" not in notes(pg.recommended("fleet"))
    fresh, kept = notes(pg.recommended("people")), notes(pg.recommended("people", seed=SECRET))
    assert "average out" in fresh
    assert "average out" not in kept
    assert SECRET not in kept


def test_users_whose_home_may_be_elsewhere_are_said_and_a_second_place_can_be_recommended(tmp_path):
    city = pg.make_city(users=6, days=5, seed=3, recorder="trips")
    pg.write(city, tmp_path / "raw.parquet")
    test = "zones lie around the places of most ends"
    counts, verdicts = {}, {}
    for places in (1, 2):
        words = (["--places", places] if places > 1 else []) + ["--tz", "Europe/Paris", "--dry-run"]
        done = run("publish", tmp_path / "raw.parquet", "--recommended", "people", *words, "--json")
        content = json.loads(done.stdout)
        counts[places] = content["counts"]["zone_unclear_users"]
        verdicts[places] = next(each for each in content["audit"] if each["test"] == test)
        zones = pg.PrivacyZones(700, 600, places=places)
        placed = zones.place(city.promesse.traces())
        assert counts[places] == placed.unclear
        assert content["counts"]["zone_users_with_fewer_places"] == placed.fewer
    assert counts[1] >= 3 > counts[2]
    assert verdicts[1]["verdict"] == "review"
    assert f"{counts[1]} of 6 users" in verdicts[1]["reason"]
    assert "--places 2" in verdicts[1]["reason"]
    assert pg.recommended("people", places=2).mechanisms[0].places == 2
    done = run("publish", tmp_path / "raw.parquet", "--recommended", "fleet", "--places", 2, "--dry-run")
    assert done.exit_code == 2
    with pytest.raises(ValueError, match="places"):
        pg.recommended("fleet", places=2)


def test_known_homes_are_the_zones_of_what_is_recommended_as_the_review_advises(tmp_path):
    """The advice of the review, typed beside what was typed before, leads to a publication."""
    city = pg.make_city(users=6, days=5, seed=3, recorder="trips")
    _, pois = pg.make_city(users=6, days=5, seed=3, recorder="trips", return_pois=True)
    known = pois[pois["kind"] == "home"].drop_duplicates("user")[["user", "geometry"]]
    known.to_file(tmp_path / "homes.gpkg")
    pg.write(city, tmp_path / "raw.parquet")
    words = ("--recommended", "people", "--tz", "Europe/Paris", "--dry-run", "--json")
    secret = {VARIABLE: SECRET}
    before = json.loads(run("publish", tmp_path / "raw.parquet", *words, **secret).stdout)
    assert "known homes as zones (--zones)" in str(before["audit"])
    done = run("publish", tmp_path / "raw.parquet", *words, "--zones", tmp_path / "homes.gpkg", **secret)
    assert done.exit_code == 0, done.output
    mechanism = pg.recommended("people", seed=SECRET, zones=known)
    zones, promesse = mechanism.mechanisms
    assert (zones.radius, zones.offset) == (700, 600)
    assert promesse == pg.recommended("people").mechanisms[1]
    rest = zones.protect(city.promesse.traces())
    assert json.loads(done.stdout)["counts"]["zone_records"] == len(city) - rest.records
    with pytest.raises(ValueError, match="zones"):
        pg.recommended("fleet", zones=known)
    done = run("publish", tmp_path / "raw.parquet", "--recommended", "fleet", "--zones", tmp_path / "homes.gpkg")
    assert done.exit_code == 2


def test_users_without_a_zone_are_counted_if_zones_name_users(raw, homes):
    traces = raw.promesse.traces()
    for known, without in ((homes, None), (homes[:3], "2 users of the data have no zone"), (homes[:4], "1 user of")):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pg.PrivacyZones(400, 0, zones=known).protect(traces)
            pg.PrivacyZones(400, 0, zones=known).protect(pg.prepare(traces, tz="Europe/Paris", keep_user=True))
        said = [str(warning.message) for warning in caught if "Privacy zones" in str(warning.message)]
        assert len(said) == 2
        assert all((without or "users of the data") in text for text in said) == (without is not None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pg.PrivacyZones(400, 0, zones=homes.drop(columns="user")).protect(traces)
    assert not any("no zone" in str(warning.message) for warning in caught)


def test_recommended_mechanisms():
    people, fleet = pg.recommended("people"), pg.recommended("fleet")
    assert [type(member).__name__ for member in people.mechanisms] == ["PrivacyZones", "Promesse"]
    assert people.mechanisms[1].ends > 0
    assert fleet.ends > 0
    with pytest.raises(ValueError, match="'kind' parameter of recommended must be one of 'people', 'fleet'"):
        pg.recommended("dogs")


@pytest.mark.parametrize(
    ("mechanism", "match"),
    [
        (pg.Chain([pg.PrivacyZones(seed="short"), pg.Promesse(200)]), "at least 32 characters"),
        (pg.Chain([pg.PrivacyZones(seed=10**50), pg.Promesse(200)]), "at least 32 characters"),
        (pg.Chain([pg.Promesse(200, ends=600, seed=SECRET)]), "has a seed"),
        (pg.Promesse(200, ends=600, seed=SECRET), "has a seed"),
        (pg.WaitForMe.v1_1(), r"Pass pg\.WaitForMe\(\)"),
        (pg.PrivacyZones(), "needs a mechanism"),
        (pg.Chain([pg.Promesse(200), pg.PrivacyZones()]), "before all else"),
    ],
)
def test_what_cannot_be_published_with_is_refused(raw, mechanism, match):
    with pytest.raises(ValueError, match=match) as caught:
        raw.promesse.publish(None, mechanism, dry_run=True)
    assert SECRET not in str(caught.value)


def test_the_accessor_removes_zones(raw, homes):
    ours = raw.promesse.zones(600, 500, zones=homes, seed=1)
    expected = pg.PrivacyZones(600, 500, zones=homes, seed=1).protect(raw)
    pd.testing.assert_frame_equal(pd.DataFrame(ours), pd.DataFrame(expected))
    for word in ("Hassan", "radius", "averages the displacements out"):
        assert word in type(raw.promesse).zones.__doc__


# The command line


def test_the_command_zones(files, homes, tmp_path):
    out, secret = tmp_path / "rest.parquet", tmp_path / "secret.txt"
    result = run(
        "zones", files / "raw.parquet", out, "--zones", files / "homes.geojson", "--secret-file", secret, "--keep-users"
    )
    assert result.exit_code == 0, result.output
    assert "A new secret is in" in result.stderr
    kept = secret.read_text().strip()
    assert len(kept) == 64
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert kept not in result.output
    assert kept.encode() not in out.read_bytes()
    rest = pg.read_file(out, as_traces=True)
    expected = pg.PrivacyZones(zones=homes, seed=kept).protect(pg.read_file(files / "raw.parquet", as_traces=True))
    assert rest.records == expected.records
    assert rest.breaks.tolist() == expected.breaks.tolist()
    again = run(
        "zones",
        files / "raw.parquet",
        tmp_path / "b.parquet",
        "--zones",
        files / "homes.geojson",
        "--keep-users",
        PROMESSE_GEO_SECRET=kept,
    )
    assert again.exit_code == 0
    assert pg.read_file(tmp_path / "b.parquet", as_traces=True).points.tobytes() == rest.points.tobytes()
    assert json.loads(json.dumps(rest.protection))["parameters"] == {"radius": 500.0, "offset": 400.0, "places": 1}


def test_zones_without_a_secret_say_so(files, tmp_path):
    result = run(
        "zones", files / "raw.parquet", tmp_path / "a.parquet", "--radius", 600, "--offset", 500, "--places", 2
    )
    assert result.exit_code == 0, result.output
    assert "--secret-file" in result.stderr
    assert "Privacy zones removed" in result.stderr


@pytest.mark.parametrize(
    ("words", "environment", "code", "said"),
    [
        (["--radius", 100], {}, 2, "--offset of PrivacyZones must be below"),
        (["--zones", "none.gpkg"], {}, 1, "--zones none.gpkg does not exist"),
        (["--zones", "raw.parquet"], {}, 2, "cannot be read as points or polygons"),
        ([], {VARIABLE: "swordfish"}, 2, "at least 32 characters"),
        (["--secret-file", "short.txt"], {}, 2, "short.txt: The secret"),
        (["--seed", "1"], {}, 2, "No such option"),
    ],
)
def test_wrong_options_of_zones_are_explained(files, words, environment, code, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.txt").write_text("swordfish\n")
    (tmp_path / "raw.parquet").write_text("nothing")
    result = run("zones", files / "raw.parquet", "out.parquet", *words, **environment)
    assert result.exit_code == code, result.output
    assert said in " ".join(result.output.split())
    assert "swordfish" not in result.output


def test_smooth_cuts_ends(files, tmp_path):
    for ends in (0, 400):
        words = ("--epsilon", 200, "--ends", ends, "--max-interval", "20h", "--keep-users")
        assert run("smooth", files / "raw.parquet", tmp_path / f"{ends}.parquet", *words).exit_code == 0
    sizes = [pg.read_file(tmp_path / f"{ends}.parquet", as_traces=True) for ends in (0, 400)]
    assert sizes[1].records < sizes[0].records
    assert sizes[1].protection["parameters"]["ends"] == 400
    assert run("smooth", files / "raw.parquet", tmp_path / "c.parquet", "--epsilon", 200, "--ends", 5).exit_code == 2


def test_publish_with_zones_of_files(files, homes, tmp_path):
    words = ("--epsilon", 200, "--ends", 400, "--zones", files / "circles.parquet", "--tz", "Europe/Paris", "--json")
    result = run("publish", files / "raw.parquet", tmp_path / "safe.parquet", *words)
    assert result.exit_code == 0, result.output
    counts = json.loads(result.stdout)["counts"]
    assert counts["zone_records"] > 0
    file = pg.read_file(tmp_path / "safe.parquet", as_traces=True)
    assert [member["mechanism"] for member in file.protection["parameters"]["mechanisms"]] == [
        "PrivacyZones",
        "Promesse",
    ]
    assert len(file.breaks) == 0


def test_publish_as_recommended(files, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("ab" * 32)
    words = ("--tz", "Europe/Paris", "--dry-run", "--secret-file", secret)
    result = run("publish", files / "raw.parquet", "--recommended", "people", *words)
    assert result.exit_code == 0, result.output
    assert (
        "Protected with PrivacyZones (radius = 700 m, offset = 600 m), then Promesse (epsilon = 200 m, ends = 400 m)."
        in result.stdout
    )
    assert secret.read_text().strip() not in result.output
    result = run("publish", files / "raw.parquet", "--recommended", "fleet", "--tz", "Europe/Paris", "--dry-run")
    assert "Protected with Promesse (epsilon = 200 m, ends = 1,000 m)." in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--recommended", "people", "--epsilon", 200], "--recommended replaces --epsilon"),
        (["--recommended", "fleet", "--zone-radius", 200, "--mechanism", "wait-for-me"], "--zone-radius, --mechanism"),
        (["--epsilon", 200, "--zone-offset", 5], "need --zone-radius or --zones"),
        (["--epsilon", 200, "--mechanism", "chain"], "'chain' is not one of"),
        (["--epsilon", 0.01, "--ends", 5, "--mechanism", "geo-indistinguishability"], "no parameter ends"),
    ],
)
def test_options_that_exclude_each_other_are_explained(files, words, said):
    result = run("publish", files / "raw.parquet", "--dry-run", *words)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_a_saved_configuration_holds_no_secret(files, tmp_path):
    secret, config = tmp_path / "secret.txt", tmp_path / "config.json"
    secret.write_text("ab" * 32)
    words = (
        "--tz",
        "Europe/Paris",
        "--dry-run",
        "--zone-radius",
        600,
        "--zone-offset",
        500,
        "--epsilon",
        200,
        "--ends",
        400,
    )
    result = run("publish", files / "raw.parquet", *words, "--secret-file", secret, "--save-config", config)
    assert result.exit_code == 0, result.output
    assert secret.read_text().strip() not in config.read_text()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = run("publish", files / "raw.parquet", "--dry-run", "--config", config)
    assert again.exit_code == 0, again.output
    assert again.stdout.splitlines()[:2] == result.stdout.splitlines()[:2]


@pytest.mark.parametrize("command", [["zones"], ["publish", "--epsilon", 200], ["publish", "--recommended", "people"]])
def test_zones_of_several_layers_are_an_error(command, files, tmp_path):
    places = gpd.GeoDataFrame(geometry=[shapely.Point(4.8, 45.7)], crs=4326)
    places.to_file(tmp_path / "places.gpkg", layer="shops")
    places.to_file(tmp_path / "places.gpkg", layer="homes")
    result = run(*command, files / "raw.parquet", tmp_path / "out.parquet", "--zones", tmp_path / "places.gpkg")
    assert result.exit_code != 0
    words = " ".join(result.output.split())
    assert "several layers: 'shops' and 'homes'" in words
    assert "a file of its own" in words
    assert "pyogrio" not in result.output
    assert not (tmp_path / "out.parquet").exists()


def test_empty_layers_and_tables_are_no_zones(tmp_path):
    places = gpd.GeoDataFrame(geometry=[shapely.Point(4.8, 45.7)], crs=4326)
    places.head(0).to_file(tmp_path / "places.gpkg", layer="shops", geometry_type="Point")
    places.to_file(tmp_path / "places.gpkg", layer="homes")
    assert len(read_zones(str(tmp_path / "places.gpkg"))) == 1


CHOICES = ("--tz", "Europe/Paris", "--dry-run", "--zone-radius", 600, "--zone-offset", 500, "--epsilon", 200)


def test_paths_of_a_configuration_are_relative_to_its_folder(files, tmp_path, monkeypatch):
    (tmp_path / "kept").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "secret.txt").write_text("ab" * 32)
    monkeypatch.chdir(tmp_path)
    saved = ("--secret-file", "secret.txt", "--save-config", Path("kept", "config.json"))
    first = run("publish", files / "raw.parquet", *CHOICES, *saved)
    assert first.exit_code == 0, first.output
    path = json.loads(Path("kept", "config.json").read_text())["secret_file"]
    assert Path(path) == Path("..", "secret.txt")
    monkeypatch.chdir(tmp_path / "other")
    for config in (Path("..", "kept", "config.json"), tmp_path / "kept" / "config.json"):
        again = run("publish", files / "raw.parquet", "--dry-run", "--config", config)
        assert again.exit_code == 0, again.output
        assert again.stdout.splitlines()[:2] == first.stdout.splitlines()[:2]
    assert not list((tmp_path / "other").iterdir())


def test_a_secret_that_a_configuration_names_must_exist(files, tmp_path):
    config, secret = tmp_path / "config.json", tmp_path / "secret.txt"
    config.write_text(json.dumps({"zone_radius": 600, "epsilon": 200, "secret_file": "secret.txt"}))
    for more in (["--dry-run"], [tmp_path / "public.parquet"]):
        result = run("publish", files / "raw.parquet", *more, "--config", config)
        assert result.exit_code == 1
        assert "secret.txt, does not exist" in " ".join(result.output.split())
        assert "--secret-file" in result.output
        assert not secret.exists()


def test_a_dry_run_makes_no_secret(files, tmp_path):
    secret = tmp_path / "secret.txt"
    for more in (CHOICES, ("--tz", "Europe/Paris", "--dry-run", "--recommended", "people")):
        result = run("publish", files / "raw.parquet", *more, "--secret-file", secret)
        assert result.exit_code in (0, 3), result.output
        assert "dry run makes no secret" in result.output
        assert not secret.exists()


@st.composite
def recorded(draw):
    """Traces in a plane with breaks and gaps, some of whose users stay in a zone, and the breaks by record."""
    rows, step = [], st.sampled_from([-1_000, 0, 1_000])
    for user in range(draw(st.integers(1, 4))):
        x, y = (500 + 1_000 * draw(st.integers(-2, 2)) for _ in range(2))
        for number in range(draw(st.integers(1, 15))):
            begins = draw(st.booleans()) and number > 0
            rows.append((f"u{user}", x, y, draw(st.sampled_from([600, 600, 20_000])), begins))
            x, y = x + draw(step), y + draw(step)
    frame = pd.DataFrame(rows, columns=["user", "x", "y", "wait", "begins"])
    frame["time"] = pd.Timestamp("2026-05-04 06:00") + pd.to_timedelta(frame.groupby("user")["wait"].cumsum(), "s")
    frame["segment"] = frame.groupby("user")["begins"].cumsum()
    return frame


def count_splits(frame, box, gap):
    """Return the numbers of users, of breaks of the recorder and of zones, and of gaps, record by record."""
    counts = dict.fromkeys(("kept_users", "breaks", "zone_breaks", "gaps"), 0)
    for _, rows in frame.groupby("user"):
        last, began = None, False
        for row in rows.itertuples():
            began = began or row.begins
            if box.intersects(shapely.Point(row.x, row.y)):
                continue
            if last is None:
                counts["kept_users"] += 1
            elif began:
                counts["breaks"] += 1
            elif row.Index > last.Index + 1 or box.intersects(shapely.LineString([(last.x, last.y), (row.x, row.y)])):
                counts["zone_breaks"] += 1
            elif (row.time - last.time).total_seconds() >= gap:
                counts["gaps"] += 1
            last, began = row, False
    return counts


@given(recorded(), st.sampled_from(["common", "keep-dates"]))
@examples(100)
def test_breaks_of_the_recorder_and_of_zones_are_counted_as_a_plain_loop_counts_them(frame, calendar):
    box = shapely.box(0, 0, 1_900, 1_900)
    zones = pg.PrivacyZones(1, 0, zones=gpd.GeoDataFrame(geometry=[box], crs="EPSG:32631"))
    points = gpd.points_from_xy(frame["x"], frame["y"], crs="EPSG:32631")
    data = gpd.GeoDataFrame(frame[["user", "time", "segment"]], geometry=points)
    raw = pg.Traces.from_frame(data, segment="segment", space="plane")
    choices = Choices.check(None, calendar, "4h", None, None, True)
    counts = protect_raw(raw, choices, pg.Chain([zones, pg.Promesse(200)])).counts
    expected = count_splits(frame, box, 4 * 3600)
    assert {name: counts[name] for name in expected} == expected
    assert counts["traces"] == sum(expected.values())


def test_the_breaks_of_users_in_zones_entirely_are_no_breaks_of_what_is_kept():
    """Zones that make breaks and remove a person with as many make some all the same."""
    times = pd.date_range("2026-05-04 08:00", periods=40, freq="5min", tz="UTC")
    still = pd.DataFrame({"user": "still", "time": times, "x": 900_000.0, "y": 0.0, "segment": np.arange(40)})
    walker = pd.DataFrame({"user": "walker", "time": times, "x": 500.0 * np.arange(40), "y": 0.0, "segment": 0})
    frame = pd.concat([still, walker], ignore_index=True)
    data = gpd.GeoDataFrame(
        frame[["user", "time", "segment"]], geometry=gpd.points_from_xy(frame.x + 4e5, frame.y + 5e6), crs=32631
    )
    places = gpd.GeoDataFrame(geometry=gpd.points_from_xy([1_300_000.0, 410_000.0], [5e6, 5e6]), crs=32631)
    zones = pg.PrivacyZones(800, 0, zones=places)
    traces = pg.Traces.from_frame(data, segment="segment", space="plane")
    with pytest.warns(UserWarning, match=r"and made 1 break in traces\."):
        zones.protect(traces)
    result = pg.publish(traces, None, pg.Chain([zones, pg.Promesse(200)]), dry_run=True)
    counts = result.counts[["kept_users", "breaks", "zone_breaks", "zone_users", "gaps", "traces"]]
    assert counts.tolist() == [1, 0, 1, 1, 0, 2]
    assert "break of the recorder" not in result.to_text()
    assert "2 traces after splitting at gaps and breaks (of 1 user)" in " ".join(result.to_text().split())


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("road", ["chain", "publish"])
def test_the_order_of_zones_does_not_matter(road):
    """Ways from home to work, 9 km, past a polygon whose edges would look like ends."""
    way, day = np.arange(0.0, 9001, 90), pd.Timestamp("2024-03-04", tz="UTC")
    ways = [(day + pd.Timedelta(days=n, hours=hour), x) for n in range(5) for hour, x in ((8, way), (17, way[::-1]))]
    spread = np.random.default_rng(1).normal(0, 90, (len(ways), 2))
    frame = pd.concat(
        pd.DataFrame({"user": "ana", "time": begin + pd.to_timedelta(10 * np.arange(len(x)), unit="s"), "x": x + 65e4})
        .assign(y=6_860_000.0)
        .pipe(lambda part, ends=ends: part.assign(y=np.r_[part.y[0] + ends[0], part.y[1:-1], part.y[0] + ends[1]]))
        for (begin, x), ends in zip(ways, spread, strict=True)
    ).reset_index(drop=True)
    points = gpd.points_from_xy(frame.pop("x"), frame.pop("y"), crs=2154)
    frame = gpd.GeoDataFrame(frame, geometry=points)
    clinic = gpd.GeoDataFrame(geometry=[shapely.box(654_000, 6_859_700, 654_600, 6_860_300)], crs=2154)
    homes, grounds = pg.PrivacyZones(700, 600, seed=SECRET, places=2), pg.PrivacyZones(zones=clinic, seed=SECRET)
    results = []
    for order in ([homes, grounds], [grounds, homes]):
        chain = pg.Chain([*order, pg.Promesse(100)])
        safe = chain.protect(frame) if road == "chain" else pg.publish(frame, None, chain, dry_run=True).data
        results.append(sorted(safe.geometry.x))
    assert results[0] == pytest.approx(results[1], abs=0.001)
    assert 650_100 < results[0][0] < results[0][-1] < 658_900


def noon_to_noon(raw):
    """Raw data that begins and ends at noon, where nobody is at home, without a gap."""
    day = raw["time"].dt.floor("D").min()
    hours = (raw["time"] - day) / pd.Timedelta("1h")
    return raw[(hours >= 12) & (hours < 60)]


@pytest.mark.parametrize("mechanism", [pg.recommended("people"), pg.Promesse(200)])
def test_homes_that_nothing_tells_of_are_no_reason_to_pass(raw, mechanism):
    result = noon_to_noon(raw).promesse.publish(None, mechanism, tz="Europe/Paris", dry_run=True)
    audit = result.audit.set_index("test")
    assert audit.verdict["places at the ends are hidden"] == "left out"
    if isinstance(mechanism, pg.Chain):
        assert audit.verdict["zones lie around the places of most ends"] == "review"
        assert (
            "5 of 5 users begin or end fewer than 5 traces" in audit.reason["zones lie around the places of most ends"]
        )
        assert result.counts["zone_users_with_few_ends"] == 5


@pytest.mark.parametrize(("named", "verdict"), [(5, "passed"), (3, "review"), (0, "failed")])
def test_users_whom_zones_do_not_name_are_counted_and_judged(raw, homes, named, verdict):
    zones = homes.assign(user=[name if i < named else f"other-{i}" for i, name in enumerate(homes["user"])])
    mechanism = pg.Chain([pg.PrivacyZones(700, 600, zones=zones, seed=SECRET), pg.Promesse(200)])
    result = raw.promesse.publish(None, mechanism, tz="Europe/Paris", dry_run=True)
    audit = result.audit.set_index("test")
    assert audit.verdict["users have zones"] == verdict
    assert result.counts["users_without_zone"] == 5 - named
    assert (verdict == "passed") or f"{5 - named} of 5 users have no zone" in audit.reason["users have zones"]


def test_users_whom_one_of_several_zones_names_have_a_zone(raw, homes):
    halves = [pg.PrivacyZones(700, 600, zones=half, seed=SECRET) for half in (homes[:3], homes[3:])]
    result = raw.promesse.publish(None, pg.Chain([*halves, pg.Promesse(200)]), tz="Europe/Paris", dry_run=True)
    assert result.audit.set_index("test").verdict["users have zones"] == "passed"
    found = pg.Chain([pg.PrivacyZones(700, 600, seed=SECRET), halves[0], pg.Promesse(200)])
    result = raw.promesse.publish(None, found, tz="Europe/Paris", dry_run=True)
    assert result.counts["users_without_zone"] == 0
