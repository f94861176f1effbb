"""The risk report: its values are those of the metrics, and the page stands alone, without positions and names."""

import re
import stat
import sys
import warnings
from dataclasses import dataclass, replace
from html.parser import HTMLParser

import click.testing
import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

import promesse_geo as pg
from promesse_geo.audit.owned_parts import OwnedParts, owner_numbers
from promesse_geo.audit.risk_page import number
from promesse_geo.audit.risk_report import _in_words
from promesse_geo.cli.commands import main

MECHANISM = pg.Promesse(200)
KEYS = ["unicity", "stays", "footprints", "footprints_alike", "linkage"]
KEYS += ["places", "places_noise", "places_residue", "ends"]


@dataclass(frozen=True)
class Nothing(pg.Mechanism):
    """Drop all records."""

    remark: str = "a <b> & 'c'"

    def _protect(self, traces):
        return traces.select(np.zeros(traces.records, bool))


@pytest.fixture(scope="module")
def raw():
    return pg.make_city(users=8, days=6, seed=3, as_traces=True, recorder="phone")


@pytest.fixture(scope="module")
def parts(raw):
    return pg.prepare(raw, tz="Europe/Paris", keep_user=True)


@pytest.fixture(scope="module")
def safe(parts):
    with pytest.warns(UserWarning, match="could not be protected"):
        return MECHANISM.protect(parts)


@pytest.fixture(scope="module")
def few(parts):
    """The parts of the first three people."""
    return parts.select(np.array([user < "user-003" for user in parts.users])[parts.trace_numbers])


@pytest.fixture(scope="module")
def few_safe(few):
    with warnings.catch_warnings(action="ignore"):  # of parts that are too short to protect
        return MECHANISM.protect(few)


@pytest.fixture(scope="module")
def done(parts, safe, tmp_path_factory):
    page = tmp_path_factory.mktemp("report") / "report.html"
    return pg.report(parts, safe, page, mechanism=MECHANISM, seed=5)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_a_new_page_is_for_its_owner_only(done):
    assert stat.S_IMODE(done.path.stat().st_mode) == 0o600


def values_of(report, column="value"):
    return report.measures.set_index("key")[column]


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "action", "style") and "url" in value]
        self.links += [value for name, value in attrs if name in ("src", "href", "action")]
        if tag not in ("meta", "!doctype"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


# Values


def test_attacks_on_all_data_have_the_values_of_their_metrics(done, parts, safe):
    values = values_of(done)
    assert list(values.index) == KEYS
    metrics = {
        "unicity": pg.Unicity(seed=5),
        "linkage": pg.Linkage(),
        "places": pg.PoiRetrieval(),
        "places_noise": pg.AdaptivePoiRetrieval(kind="geo-indistinguishability"),
        "places_residue": pg.Residue(),
        "ends": pg.EndRetrieval(),
    }
    for key, metric in metrics.items():
        assert values[key] == pytest.approx(metric.measure(parts, safe)), key
    ends = pg.EndRetrieval().detail(parts, safe)
    assert values_of(done, "raw")["ends"] == ends.attrs["raw"]
    assert values_of(done, "guess")["ends"] == pytest.approx(ends.attrs["random"])
    assert values_of(done, "raw")["linkage"] == pytest.approx(pg.Linkage().measure(parts, parts))
    utility = done.utility.set_index("metric").value
    expected = [pg.SpatialError(), pg.RangeQueryDistortion(seed=5), pg.AreaCoverage(), pg.Compression()]
    for metric in expected:
        assert utility[type(metric).__name__] == pytest.approx(metric.measure(parts, safe), abs=1e-6)


def test_attacks_on_halves_know_the_records_before_the_midpoint(done, parts, safe):
    middle = parts.times.min() + (parts.times.max() - parts.times.min()) // 2
    early, late, published = parts.select(parts.times < middle), parts.select(parts.times >= middle), safe
    known = early.to_frame().assign(user=lambda frame: frame["user"].str.rpartition("-")[0])
    published = published.select(published.times >= middle)
    for key, metric in {
        "stays": pg.Reidentification(),
        "footprints": pg.HeatMapReidentification(),
        "footprints_alike": pg.HeatMapReidentification(known=MECHANISM),
    }.items():
        with warnings.catch_warnings(action="ignore"):  # of known traces that are too short to protect
            assert values_of(done)[key] == pytest.approx(metric.measure(known, published)), key
    raw = pg.HeatMapReidentification().measure(known, late)
    assert values_of(done, "raw")["footprints"] == pytest.approx(raw)
    assert values_of(done, "guess")["footprints"] == pytest.approx(100 / 8)


def test_raw_data_is_found_and_nothing_is_found_in_no_data(parts, tmp_path):
    same = pg.report(parts, parts, tmp_path / "same.html", seed=1)
    values = values_of(same)
    assert values["unicity"] == values_of(same, "raw")["unicity"] > 99
    assert (values["places"], values["ends"]) == (100, 100)
    assert values["stays"] == values_of(same, "raw")["stays"] > 60
    assert same.people["place_located"].sum() == same.people["place_distance"].notna().sum() > 0
    assert (same.people["stays_found"] == same.people["stays"]).all()
    nothing = Nothing().protect(parts)
    none = pg.report(parts, nothing, tmp_path / "none.html", mechanism=Nothing(), seed=1)
    found = values_of(none).dropna()
    assert (found == 0).all()
    assert {"stays", "footprints", "places", "ends", "unicity"} <= set(found.index)
    assert not none.people[["place_located", "recognized_by_stays", "recognized_by_footprints"]].any(axis=None)
    assert none.people["stays_found"].sum() == 0
    assert none.sizes["published_users"] == none.sizes["published_records"] == 0


def test_guesses_for_stops_are_random_published_points(done, parts, safe):
    guess = values_of(done, "guess")["places"]
    assert guess == values_of(done, "guess")["places_residue"]
    pois = pg.pois(parts)
    counts = pois.groupby("user").size()
    rng = np.random.default_rng(0)
    frame = safe.to_frame()[["user", "geometry"]]
    rows_of = {user: rows for user, rows in frame.groupby("user").indices.items() if user in counts}
    scores = []
    for _ in range(30):
        drawn = [rows[rng.integers(len(rows), size=counts[user])] for user, rows in rows_of.items()]
        table = pg.match_pois(pois, frame.iloc[np.concatenate(drawn)])
        scores.append(100 * table.fscore[table.original_pois > 0].mean())
    assert min(scores) - 1 <= guess <= max(scores) + 1


def test_people_are_numbered_anew_the_worst_first(done, parts, safe):
    people = done.people
    assert people["person"].tolist() == list(range(1, 9))
    risks = people[["place_located", "recognized_by_stays", "recognized_by_footprints"]].sum(axis=1)
    assert risks.is_monotonic_decreasing
    metric = pg.EndRetrieval()
    ends = metric.compare_second(metric.pair(parts, safe))
    assert people["place_located"].sum() == (ends["either"] <= 100).sum()
    assert sorted(people["place_distance"].dropna()) == sorted(np.ceil(ends["either"] / 10) * 10)
    assert people["second_place"].sum() == ends["second"].sum()
    assert people["stays"].sum() == len(pg.pois(parts))
    best = np.zeros(8)
    for metric in (pg.PoiRetrieval(), pg.AdaptivePoiRetrieval(kind="geo-indistinguishability"), pg.Residue()):
        matched = metric.detail(parts, safe)["matched"]
        best = np.maximum(best, matched.groupby(matched.index.str.rpartition("-").get_level_values(0)).sum())
    assert people["stays_found"].sum() == best.sum()
    assert f"For {people['place_located'].sum()} of {len(ends)} people whose traces often begin or end" in repr(done)


def test_sizes_are_of_original_and_protected_data(done, parts, safe):
    assert done.sizes.to_dict() == {
        "users": 8,
        "published_users": 8,
        "traces": len(parts),
        "published_traces": len(safe),
        "records": parts.records,
        "published_records": safe.records,
    }


def test_without_a_mechanism_the_attacker_who_applies_it_is_not_computed(few, few_safe, tmp_path):
    report = pg.report(few, few_safe, tmp_path / "page.html", seed=5)
    assert np.isnan(values_of(report)["footprints_alike"])
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "not tried, because the protection was not named" in text
    assert (
        "Promesse (epsilon\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}200\N{NO-BREAK SPACE}m)" in text
    )  # the data name their mechanism


def test_a_mechanism_that_cannot_protect_what_is_known_has_no_value(tmp_path):
    """Wait for Me needs two traces; of the second user there are records in the second half alone."""
    city = pg.make_city(users=2, days=2, recorder="phone")
    late = city[(city["user"] == "user-000") | (city["time"] > city["time"].min() + pd.Timedelta("1D"))]
    mechanism = pg.WaitForMe(k=2, max_trash=1.0, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = pg.report(late, late.promesse.protect(mechanism), tmp_path / "a.html", mechanism=mechanism, seed=1)
    row = report.measures.set_index("key").loc["footprints_alike"]
    assert np.isnan(row["value"])
    assert "cannot protect the first half" in row["reason"]


# Names


def test_whole_traces_are_compared_with_the_parts_of_their_owners(raw, tmp_path):
    halves = pg.split_gaps(raw, keep_user=True)
    smooth = pg.Promesse(100).protect(halves)
    by_parts = pg.report(halves, smooth, tmp_path / "parts.html", seed=2)
    by_owner = pg.report(raw, smooth, tmp_path / "owners.html", seed=2)
    for key in ("unicity", "footprints", "linkage", "ends"):
        assert values_of(by_parts)[key] == pytest.approx(values_of(by_owner)[key]), key
    assert by_owner.sizes["users"] == 8
    assert by_owner.sizes["traces"] == by_parts.sizes["traces"] == len(halves)
    assert by_owner.utility.value[0] < 1e-6


def test_parts_that_are_dropped_are_counted_whatever_the_traces_are(raw, parts, tmp_path):
    chain = pg.Chain([pg.PrivacyZones(1200, 1000, seed="s" * 32), pg.Promesse(500, ends=1500, seed=1)])
    with warnings.catch_warnings(action="ignore"):
        split = pg.split_gaps(raw, keep_user=True)
        safe = chain.protect(split)
        sizes = [pg.report(before, safe, tmp_path / f"{len(before)}.html").sizes for before in (split, raw)]
    assert 0 < len(safe) < len(split)
    for each in sizes:
        assert (each["traces"], each["published_traces"]) == (len(split), len(safe))
        assert (each["records"], each["published_records"]) == (raw.records, safe.records)
        assert each["published_users"] == len({user[:-6] for user in safe.users})


def test_names_do_not_matter(few, few_safe, tmp_path):
    def renamed(traces):
        users = [f"x-y-{name}" for name in traces.users]
        return replace(traces, users=pd.Index(users, dtype=str))

    first = pg.report(few, few_safe, tmp_path / "a.html", mechanism=MECHANISM, seed=9)
    again = pg.report(renamed(few), renamed(few_safe), tmp_path / "b.html", mechanism=MECHANISM, seed=9)
    pd.testing.assert_frame_equal(first.people, again.people)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_new_names_of_parts_are_warned_of(raw, tmp_path):
    renamed = pg.prepare(raw, tz="Europe/Paris")
    with pytest.warns(UserWarning, match="--keep-users"):
        report = pg.report(renamed, renamed, tmp_path / "page.html", seed=1)
    assert report.sizes["users"] == len(renamed)


def test_overlapping_parts_of_an_owner_are_one_trace_in_order_of_time():
    times = np.array([0, 20, 40, 10, 30]) * 10**9
    traces = pg.Traces.from_arrays(
        np.arange(5.0), np.zeros(5), times=times, users=["a-00000", "a-00001"], counts=[3, 2], crs="EPSG:32631"
    )
    owned = OwnedParts.of(traces, traces)
    assert owner_numbers(owned.original.users).tolist() == [0, 0]
    assert owned.halves().known.times.tolist() == [0, 10 * 10**9]
    assert owned.halves().known.points[:, 0].tolist() == [0, 3]


@pytest.mark.parametrize("seeded", [False, True])
def test_the_same_seed_gives_the_same_bytes_whatever_the_order_of_users(few, few_safe, tmp_path, seeded):
    seed = {"seed": 4} if seeded else {}
    frame, safe = few.to_frame(), few_safe.to_frame()
    pg.report(frame, safe, tmp_path / "a.html", mechanism=MECHANISM, **seed)
    users = list(dict.fromkeys(frame["user"]))[::-1]
    mixed = pd.concat([frame[frame["user"] == user] for user in users], ignore_index=True)
    pg.report(mixed, safe, tmp_path / "b.html", mechanism=MECHANISM, **seed)
    same = (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert same is seeded


# The page


def test_the_page_stands_alone_without_positions_and_names(done):
    text = done.path.read_text(encoding="utf-8")
    tags = Tags(text)
    assert tags.open == []
    assert tags.links == []
    assert "script" not in tags.tags
    assert "user-0" not in text
    assert not re.search(r"\d\.\d{3}", text)  # neither degrees nor metres of positions
    assert text.count('class="bars"') == len(KEYS)
    for title in done.measures["title"]:
        assert title in text


def test_content_of_the_data_is_escaped_and_names_are_left_out(few, tmp_path):
    users = {name: f"<script>{number}</script>" for number, name in enumerate(few.users)}
    odd = replace(few, users=pd.Index(sorted(users.values()), dtype=str))
    pg.report(odd, odd, tmp_path / "odd.html", mechanism=Nothing(remark="x <b> & 'c'"), seed=1)
    text = (tmp_path / "odd.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script" not in text
    assert "x &lt;b&gt; &amp; &#x27;c&#x27;" in text
    pg.report(odd, odd, tmp_path / "named.html", mechanism=Nothing(remark=odd.users[0]), seed=1)
    assert "&lt;script" not in (tmp_path / "named.html").read_text(encoding="utf-8")


def test_mechanisms_are_named_in_words(parts):
    chain = pg.Chain([pg.PrivacyZones(600, offset=500), pg.Promesse(200)])
    assert _in_words(pg.Promesse(200), parts) == "Promesse (epsilon = 200 m)"
    zones, smoothing = "PrivacyZones (radius = 600 m, offset = 500 m)", "Promesse (epsilon = 200 m)"
    assert _in_words(chain, parts) == f"{zones}, then {smoothing}"
    odd = pg.Promesse(1234.5, variant="pseudocode", min_points=3, ends=1300)
    assert _in_words(odd, parts) == (
        "Promesse (epsilon = 1,234.5 m, variant = pseudocode, min points = 3, ends = 1,300 m)"
    )
    noise = pg.GeoIndistinguishability.from_level(4, radius=200)
    assert _in_words(noise, parts) == "GeoIndistinguishability (epsilon = 0.00693 1/m)"
    assert _in_words(None, parts) == ""


def test_many_people_are_folded(tmp_path):
    many = pg.make_city(users=35, days=1, as_traces=True, recorder="phone")
    pg.report(many, many, tmp_path / "many.html", seed=1)
    text = (tmp_path / "many.html").read_text(encoding="utf-8")
    assert text.count("<details>") == 1
    assert "The other 5 people" in text
    assert Tags(text).open == []


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1e-9, "0"), (0.01, "< 0.1"), (7.06, "7.1"), (9.96, "10"), (1234.5, "1,234"), (2, "2")],
)
def test_numbers_have_the_digits_that_one_reads(value, text):
    assert number(value) == text


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_is_readable_in_both_themes_and_on_narrow_screens(browser, done, dark):
    browser.open(done.path, width=390, dark=dark)
    colours = browser.run("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
    ground, ink = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours)
    assert (ground < 150, ink > 600) == (dark, dark)
    assert browser.run("document.documentElement.scrollWidth") <= 390
    widths = browser.run("[...document.querySelectorAll('.bar i')].map(bar => bar.getBoundingClientRect().width)")
    full = browser.run("document.querySelector('.bar').getBoundingClientRect().width")
    bars = done.measures[["value", "raw", "guess"]].to_numpy(float).ravel()
    assert widths == pytest.approx(full * bars[~np.isnan(bars)] / 100, abs=1)


# Errors


def test_unknown_names_are_refused_with_the_option_that_keeps_them(parts, safe, tmp_path):
    with pytest.raises(ValueError, match="--keep-users"):
        pg.report(parts, pg.pseudonymize(safe), tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_data_of_other_times_are_refused(parts, safe, raw, tmp_path):
    with pytest.raises(ValueError, match="time zone"):
        pg.report(raw, safe, tmp_path / "page.html")
    later = replace(safe, times=safe.times + 10**18)
    with pytest.raises(ValueError, match="no time in common"):
        pg.report(parts, later, tmp_path / "page.html")
    with pytest.raises(ValueError, match="no records"):
        pg.report(parts.select(np.zeros(parts.records, bool)), safe, tmp_path / "page.html")


def test_existing_files_and_wrong_parameters_are_refused(parts, safe, done, tmp_path):
    with pytest.raises(FileExistsError):
        pg.report(parts, safe, done.path)
    with pytest.raises(FileNotFoundError):
        pg.report(parts, safe, tmp_path / "none" / "page.html")
    with pytest.raises(TypeError, match="'mechanism' parameter of report"):
        pg.report(parts, safe, tmp_path / "page.html", mechanism="promesse")
    with pytest.raises(TypeError, match="'path' parameter of report"):
        pg.report(parts, safe, None)


# The command


def test_the_command_takes_the_mechanism_from_the_file_or_from_its_options(few, few_safe, tmp_path):
    original, protected, page = tmp_path / "parts.parquet", tmp_path / "safe.parquet", tmp_path / "page.html"
    pg.write(few, original)
    pg.write(few_safe, protected, mechanism=MECHANISM)

    def run(*words):
        return click.testing.CliRunner().invoke(main, ["report", *map(str, (original, protected, *words))])

    called = run(page, "--seed", "5")
    assert called.exit_code == 0, called.output
    assert "an attacker locates that place, often the home, within 100 m" in called.output
    by_file = page.read_bytes()
    assert b"not tried" not in by_file
    assert run(page).exit_code == 1
    called = run(page, "--seed", "5", "--mechanism", "promesse", "--epsilon", "200", "--force")
    assert called.exit_code == 0, called.output
    assert page.read_bytes() == by_file
    assert run(tmp_path / "b.html", "--epsilon", "200").exit_code == 2
    assert run(original, "--force").exit_code == 2


@pytest.mark.filterwarnings("ignore")
def test_people_without_a_second_half_are_left_out_of_footprints(tmp_path):
    city = pg.make_city(users=4, days=4, seed=3, recorder="phone").iloc[::10]
    first, middle = city["user"].min(), city["time"].min() + (city["time"].max() - city["time"].min()) / 2
    some = city[(city["user"] != first) | (city["time"] < middle)]
    parts = pg.split_gaps(some, keep_user=True)
    result = pg.report(parts, parts, tmp_path / "report.html")
    row = result.measures.set_index("key").loc["footprints"]
    assert row["value"] == row["raw"] == 100


@pytest.mark.filterwarnings("ignore")
def test_a_second_place_counts_for_people_and_not_for_the_value_of_the_attack(tmp_path):
    """Trips between home and work, of which zones hide one."""
    city = pg.make_city(users=12, days=7, seed=3, recorder="trips")
    parts = city.promesse.prepare(tz="Europe/Paris", keep_user=True)
    safe = parts.promesse.protect(pg.Chain([pg.PrivacyZones(700, 600, seed="secret"), pg.Promesse(200, seed=1)]))
    report = pg.report(parts, safe, tmp_path / "page.html", seed=1)
    metric, people = pg.EndRetrieval(), report.people
    both = metric.compare_second(metric.pair(*map(pg.Traces.from_frame, (parts, safe))))
    assert values_of(report)["ends"] == metric.measure(parts, safe)
    located, seconds = int((both["either"] <= 100).sum()), int(both["second"].sum())
    assert people["place_located"].sum() == located > len(both) * metric.value(both) / 100
    assert people["second_place"].sum() == seconds > 1
    text = report.path.read_text(encoding="utf-8")
    assert f"<b>For {located} of {len(both)} people whose traces often begin or end at one place</b>" in text
    assert f"{seconds} have a second such place" in text
    assert f"{seconds} of {len(both)} people begin or end at least half as many traces at another place" in text
    assert text.count("(two places)") == seconds


@pytest.mark.filterwarnings("ignore")
def test_what_concerns_nobody_could_not_be_measured(tmp_path):
    times = pd.date_range("2024-03-04T08:00Z", periods=40, freq="1min")
    track = gpd.GeoDataFrame(
        {"user": "ana", "time": times}, geometry=gpd.points_from_xy(np.linspace(4.8, 4.9, 40), [45.7] * 40), crs=4326
    )
    report = pg.report(track, pg.Promesse(200).protect(track), tmp_path / "report.html")
    text = report.path.read_text(encoding="utf-8")
    assert "0 of 0" not in text + repr(report)
    assert f"could not be measured</b>: {pg.EndRetrieval().undefined}." in text
    assert "no stop of 15 minutes" in repr(report)


def test_unicity_has_no_value_of_guessing(done):
    row = done.measures.set_index("key").loc["unicity"]
    assert np.isnan(row["guess"])
    assert values_of(done, "guess").drop("unicity").notna().all()
    text = done.path.read_text(encoding="utf-8")
    assert text.count("<span>guessing</span>") == len(KEYS) - 1
    assert not any("guessing" in line for line in repr(done).splitlines() if line.startswith(row["title"]))


@pytest.mark.filterwarnings("ignore")
def test_shares_of_people_name_of_whom_they_are(tmp_path):
    """Of the first of four people there are records in the first half alone."""
    city = pg.make_city(users=4, days=4, seed=3, recorder="phone").iloc[::10]
    first, middle = city["user"].min(), city["time"].min() + (city["time"].max() - city["time"].min()) / 2
    parts = pg.split_gaps(city[(city["user"] != first) | (city["time"] < middle)], keep_user=True)
    report = pg.report(parts, parts, tmp_path / "report.html", seed=1)
    basis = values_of(report, "basis")
    assert basis["footprints"] == "3 people with records in both halves"
    assert basis["stays"] == "4 people with stops in the first half"
    assert "For 3 of 3 people with records in both halves, an attacker recognizes" in repr(report)
    unknown = report.people["recognized_by_footprints"].isna()
    assert unknown.sum() == 1
    text = report.path.read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    assert "recognizes 100 % of 3 people with records in both halves. Guesses choose among 4 people" in text
    row = re.search(rf"<tr><th>{report.people['person'][unknown].item()}</th>.*?</tr>", text)[0]
    assert re.findall(r">([^<]*)</td>", row)[2] == "–"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("users", [1, 2])
def test_one_person_cannot_be_hidden_among_others(users, tmp_path):
    city = pg.make_city(users=users, days=3, seed=3, recorder="phone")
    parts = city.promesse.prepare(tz="Europe/Paris", keep_user=True)
    report = pg.report(parts, parts, tmp_path / "report.html", seed=1)
    for text in (repr(report), report.path.read_text(encoding="utf-8")):
        assert ("cannot be hidden among others" in text) == (users == 1)
        assert ("1 people" in text, "1 persons" in text) == (False, False)


@pytest.mark.filterwarnings("ignore")
def test_a_seed_repeats_what_a_random_mechanism_draws_for_the_attacker(few, tmp_path):
    noise = pg.GeoIndistinguishability(0.002)
    safe = noise.protect(few)
    maps = [pg.report(few, safe, tmp_path / f"{n}.html", mechanism=noise, seed=7) for n in range(2)]
    assert maps[0].path.read_bytes() == maps[1].path.read_bytes()
    assert "a seed (seed=, on the command line --seed) repeats them" in maps[0].path.read_text(encoding="utf-8")
