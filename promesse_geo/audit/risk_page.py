"""The risk report as one HTML page for people who decide on publication: no positions, no names."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from promesse_geo.audit.risks import INFERENCE, LINKABILITY, SINGLING_OUT, Risks
from promesse_geo.messages import counted
from promesse_geo.plot.page import escaped, page

TITLE = "Risk report of protected traces"

_SHOWN = 30  # people in the table before the others are folded
_QUESTIONS = {
    SINGLING_OUT: (
        "1. Singling out",
        "Can one person be isolated in the published data, by somebody who knows a little about them?",
    ),
    LINKABILITY: (
        "2. Linkability",
        "Can published records of one person be linked with each other, or with what somebody knows of them?",
    ),
    INFERENCE: (
        "3. Inference",
        "Can something about a person be deduced that the publication was meant to hide, such as where they live?",
    ),
}
_STYLE = """
:root { --protected: #0072B2; --raw: #D55E00; --guess: #767676; --ground: #ececec; }
@media (prefers-color-scheme: dark) { :root { --protected: #56B4E9; --raw: #E8833A; --guess: #9a9a9a;
  --ground: #2a2d33; } }
body { max-width: 60rem; }
section { margin: 1.6rem 0; } h3 { margin: 0 0 .2rem; font-size: 1.05rem; } section p { margin: .2rem 0 .5rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; } dt { color: var(--faint); }
dd { margin: 0; overflow-wrap: anywhere; }
.bars { display: grid; grid-template-columns: max-content 1fr max-content; gap: .25rem .8rem; align-items: center; }
.bar { background: var(--ground); height: .8rem; border-radius: 2px; }
.bar i { display: block; height: 100%; border-radius: 2px; -webkit-print-color-adjust: exact;
  print-color-adjust: exact; }
.number { font-variant-numeric: tabular-nums; text-align: right; min-width: 3.6rem; }
.protected { font-weight: 600; }
.risk { font-weight: 600; color: var(--raw); }
.glance li { margin: .3rem 0; } .glance b { font-variant-numeric: tabular-nums; }
td { white-space: nowrap; } thead th { white-space: normal; vertical-align: bottom; max-width: 8.5rem; }
.sizes th:first-child, .useful th:first-child, .useful td:last-child { text-align: left; white-space: normal; }
@media print {
  :root { --protected: #0072B2; --raw: #D55E00; --guess: #767676; --ground: #e6e6e6; }
  .bar { print-color-adjust: exact; -webkit-print-color-adjust: exact; } summary { break-after: avoid; }
  details::details-content { content-visibility: visible; display: block; height: auto; } summary { display: none; }
}
"""


def risk_page(risks: Risks, *, mechanism: str) -> str:
    """Return a self-contained HTML page.

    Parameters
    ----------
    risks : Risks
        What was found.
    mechanism : str
        The mechanism in words; empty if it is not known.

    Returns
    -------
    str
    """
    parts = [
        f"<h1>{TITLE}</h1>",
        "<p>What known attacks still find in protected location traces, beside what they find in the raw data and what "
        "mere guessing finds. It helps to decide whether the data can be published. The report holds no positions and "
        "no names.</p>",
        _facts(risks, mechanism),
        _glance(risks),
        _legend(),
    ]
    for question, (title, text) in _QUESTIONS.items():
        rows = risks.measures[risks.measures["question"] == question]
        parts.append(f'<h2>{title}</h2><p class="lead">{text}</p>')
        parts += [_measure(row) for row in rows.to_dict("records")]
    parts += [_utility(risks), _dropped(risks.dropped), _people(risks.people), _notes()]
    return page(TITLE, "\n".join(parts), style=_STYLE)


def glance(risks: Risks) -> list[str]:
    """Return the main results as sentences."""
    people = risks.people
    stays, found = int(people["stays"].sum()), int(people["stays_found"].sum())
    second = int(people["second_place"].sum())
    reason = risks.measures["reason"][risks.measures["key"] == "ends"].iloc[0]
    another = (
        f"; {second:,} {'has' if second == 1 else 'have'} a second such place with at least half as many ends, which "
        "may be the home, and a guess near either one counts"
    )
    alone = (
        "1 person: all data are of one person, who cannot be hidden among others. Whoever knows who was recorded knows "
        "whose every trace is, and new names hide nothing."
    )
    return [
        *[alone] * (len(people) == 1),
        _share(
            people["place_located"],
            "whose traces often begin or end at one place",
            f"an attacker locates that place, often the home, within 100 m{another if second else ''}",
            f"How many places at the ends of traces are located could not be measured: {reason}.",
        ),
        _share(
            people["recognized_by_stays"],
            "with stops in the first half",
            "an attacker recognizes the person by the stops",
            "How many people are recognized by their stops could not be measured: nobody has stops in the first half.",
        ),
        _share(
            people["recognized_by_footprints"],
            "with records in both halves",
            "an attacker recognizes the person by the areas visited, in at least one attack",
            "How many people are recognized by areas could not be measured: nobody has records in both halves.",
        ),
        f"{found:,} of {counted(stays, 'stop')} of 15 minutes or more: found by the best of three attacks."
        if stays
        else "How many stops are found could not be measured: there is no stop of 15 minutes or more.",
    ]


def _share(found: pd.Series, which: str, what: str, otherwise: str) -> str:
    """Return for how many people, among those of whom something can be found, it is found; `otherwise` if of none."""
    people = int(found.notna().sum())
    if not people:
        return otherwise
    return f"For {int(found.sum()):,} of {counted(people, 'person', 'people')} {which}, {what}."


def percent(value: float) -> str:
    """Return a share in % as text."""
    return "–" if math.isnan(value) else f"{number(value)} %"


def number(value: float) -> str:
    """Return a number as text: one digit after the point below 10, none above."""
    if math.isnan(value):
        return "–"
    if value < 1e-6:  # a rounding error of points on the path
        return "0"
    if value < 0.05:
        return "< 0.1"
    return f"{value:,.0f}" if value >= 9.95 or value == round(value) else f"{value:.1f}"


def _facts(risks: Risks, mechanism: str) -> str:
    sizes = risks.dropped
    facts = {
        "Protected with": mechanism or "a mechanism that is not known",
        "People": f"{sizes['users']:,} original, {sizes['published_users']:,} protected",
        "Records": f"{sizes['records']:,} original, {sizes['published_records']:,} protected",
    }
    rows = "".join(f"<dt>{name}</dt><dd>{escaped(text)}</dd>" for name, text in facts.items())
    return f"<dl>{rows}</dl>"


def _glance(risks: Risks) -> str:
    items = []
    for sentence in glance(risks):
        count, rest = re.split(r"(?=: |, )", sentence, maxsplit=1)
        items.append(f"<li><b>{escaped(count)}</b>{escaped(rest)}</li>")
    return f'<h2>At a glance</h2><ul class="glance">{"".join(items)}</ul>'


def _legend() -> str:
    return (
        '<p class="faint">Long bars are bad for privacy. <b>Protected</b> is the data to publish, <b>raw data</b> is '
        "what the same attack finds without any protection, and <b>guessing</b> is what somebody reaches by chance. "
        "If the protected bar is no longer than that of guessing, this attack gains nothing.</p>"
    )


def _measure(row: Mapping[Any, Any]) -> str:
    title, value = escaped(row["title"]), row["value"]
    if row["reason"]:
        text = f"No value: {escaped(row['reason'])}."
        return f"<section><h3>{title}</h3><p>{text}</p></section>"
    sentence = row["sentence"].format(value=percent(value), basis=row["basis"])
    bars = "".join(
        _bar(name, row[column], colour)
        for name, column, colour in (
            ("protected", "value", "protected"),
            ("raw data", "raw", "raw"),
            ("guessing", "guess", "guess"),
        )
        if not math.isnan(row[column])
    )
    return f'<section><h3>{title}</h3><p>{escaped(sentence)}</p><div class="bars">{bars}</div></section>'


def _bar(name: str, value: float, colour: str) -> str:
    width = 0.0 if math.isnan(value) else min(max(value, 0.0), 100.0)
    emphasis = ' class="protected"' if colour == "protected" else ""
    return (
        f'<span{emphasis}>{name}</span><span class="bar"><i style="width:{width:.2f}%;background:var(--{colour})"></i>'
        f'</span><span class="number">{percent(value)}</span>'
    )


def _utility(risks: Risks) -> str:
    rows = []
    for row in risks.utility.to_dict("records"):
        value = row["value"]
        text = "–" if math.isnan(value) else f"{number(value)} {row['unit']}"
        sentence = "nothing to compare" if math.isnan(value) else row["sentence"].format(value=text)
        rows.append((row["title"], text, sentence))
    body = "".join(
        f"<tr><th>{escaped(title)}</th><td>{escaped(text)}</td><td>{escaped(sentence)}</td></tr>"
        for title, text, sentence in rows
    )
    return f'<h2>What remains useful</h2><div class="wide"><table class="useful"><tbody>{body}</tbody></table></div>'


def _dropped(sizes: Mapping[str, int]) -> str:
    rows = []
    for name in ("users", "traces", "records"):
        before, after = sizes[name], sizes[f"published_{name}"]
        gone = max(before - after, 0)
        share = percent(100 * gone / before) if before else "–"
        label = {"users": "people", "traces": "traces", "records": "records"}[name]
        cells = (f"{before:,}", f"{after:,}", f"{gone:,} ({share})" if name != "records" else "")
        rows.append(f"<tr><th>{label}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return (
        "<h2>What was dropped</h2><p>Traces that a mechanism cannot protect are left out. Mechanisms that place new "
        "points publish another number of records, so fewer records are not a loss by themselves.</p>"
        '<div class="wide"><table class="sizes"><thead><tr><th></th><th>original</th><th>protected</th><th>dropped</th>'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _people(people: pd.DataFrame) -> str:
    heads = (
        "person",
        "place where traces often begin or end located within 100 m",
        "recognized by stops",
        "recognized by areas",
        "stops found",
        "singled out by 4 places",
        "pieces joined",
    )
    head = f"<thead><tr>{''.join(f'<th>{name}</th>' for name in heads)}</tr></thead>"
    rows = [_person(row) for row in people.to_dict("records")]
    first, others = rows[:_SHOWN], rows[_SHOWN:]
    text = (
        "<h2>Person by person</h2><p>The worst first. People are numbered anew in this order; the numbers mean nothing "
        "outside this report. Where a person has two places at which traces often begin or end, such as home "
        "and work, the distance is that from the nearer one. Distances are rounded up to 10 m. A dash "
        "means that there is nothing to find or to compare.</p>"
    )
    table = f'<div class="wide"><table>{head}<tbody>{{}}</tbody></table></div>'
    text += table.format("".join(first))
    if others:
        rest = table.format("".join(others))
        text += f"<details><summary>The other {counted(len(others), 'person', 'people')}</summary>{rest}</details>"
    return text


def _person(row: Mapping[Any, Any]) -> str:
    distance = row["place_distance"]
    place = _yes_or_no(row["place_located"])
    place += "" if math.isnan(distance) else f", {distance:,.0f} m"
    place += " (two places)" if row["second_place"] else ""
    stops = f"{row['stays_found']:,} of {row['stays']:,}" if row["stays"] else "–"
    cells = [
        (place, row["place_located"]),
        *((_yes_or_no(row[name]), row[name]) for name in ("recognized_by_stays", "recognized_by_footprints")),
        (stops, False),
        (percent(row["singled_out"]), False),
        (percent(row["linked"]), False),
    ]
    body = "".join(f"<td{' class=risk' if risk is True else ''}>{escaped(text)}</td>" for text, risk in cells)
    return f"<tr><th>{row['person']}</th>{body}</tr>"


def _yes_or_no(found: Any) -> str:
    """Return whether something is found, a dash if there is nothing to find."""
    return "–" if pd.isna(found) else "yes" if found else "no"


def _notes() -> str:
    notes: Iterable[str] = (
        "The three questions are those of the European data protection authorities (Article 29 Working Party, Opinion "
        "05/2014 on anonymisation techniques).",
        "Halves: where the attacker knows the first half, it is the original records before the midpoint of the "
        "period. The published half is the protected records after it.",
        "F-score: a mean of two shares, that of the true stops that are found, and that of the found ones that are "
        "true. 100 % means all of them and no others. The page shows its mean over traces with stops, so it differs "
        "from the share of all stops that are found.",
        "Chance: the known places and hours, the guesses for stops, the areas of the distortion of counts, the order "
        "of people at equal risk, and the noise, zones and cut ends that the attacker applies to what he knows are "
        "drawn at random, so their figures differ from report to report; a seed (seed=, on the command line --seed) "
        "repeats them.",
        "Other attacks may find more. People with unusual places or trips are at greater risk than the averages show.",
        "Publish each person once: two publications of the same people can be joined.",
        "There is no overall grade. Whether a risk is acceptable depends on who the people are, who receives the data, "
        "and what it is for.",
    )
    return f"<h2>How to read this report</h2><ul>{''.join(f'<li>{escaped(note)}</li>' for note in notes)}</ul>"
