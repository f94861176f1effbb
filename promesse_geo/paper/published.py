"""The values that the paper published, and the mechanisms behind them.

Primault, Ben Mokhtar, Lauradoux, Brunie: Time Distortion Anonymization for the Publication of Mobility Data with High
Utility. TrustCom 2015, Tables I to VI.
"""

import math
from typing import NamedTuple

from promesse_geo.mechanisms import GeoIndistinguishability, Mechanism, Promesse, WaitForMe

DATASETS = ("Cabspotting", "Geolife", "MDC")

ZONES = {"Cabspotting": "America/Los_Angeles", "Geolife": "Asia/Shanghai", "MDC": "Europe/Zurich"}
"""Time zones in which days begin at midnight."""

MIN_DAYS = 21
"""Least number of days of data per user, which the sizes in Table I require."""


class Row(NamedTuple):
    """A mechanism of the tables.

    Parameters
    ----------
    label : str
        Name in the tables.
    mechanism : Mechanism
        The mechanism.
    kind : str
        What the adaptive attacker knows of it; see `AdaptivePoiRetrieval`.
    without : tuple of str
        Data sets that it is not run on.
    """

    label: str
    mechanism: Mechanism
    kind: str
    without: tuple[str, ...] = ()


def _promesse(epsilon: int, variant: str = "polyline") -> Row:
    label = f"Promesse, ε = {epsilon} m" + ("" if variant == "polyline" else ", pseudocode")
    return Row(label, Promesse(epsilon, variant=variant), "promesse", ("Cabspotting",) if epsilon == 50 else ())


def _noise(level: int, radius: int) -> Row:
    mechanism = GeoIndistinguishability.from_level(level, radius=radius)
    return Row(f"Geo-I, ε = ln({level})/{radius}", mechanism, "geo-indistinguishability")


_PROGRAM = Row("Wait for Me, k = 2, δ = 200 m", WaitForMe.v1_1(seed=1), "wait-for-me")

ROWS = (
    *(_promesse(epsilon) for epsilon in (50, 100, 200, 500)),
    *(_promesse(epsilon, "pseudocode") for epsilon in (50, 100, 200, 500)),
    *(_noise(level, radius) for level, radius in ((10, 100), (6, 200), (4, 200), (2, 200))),
    _PROGRAM,
    Row(f"{_PROGRAM.label}, members tested", WaitForMe(), "wait-for-me"),
)
"""The mechanisms of the experiment. The paper does not say which variant of its algorithm it measured: both are here.
Its Wait for Me was the program of 2010; the last row is the published algorithm, with the radius test fixed.
"""

TIMED = (_promesse(200), _noise(4, 200), _PROGRAM)
"""The mechanisms that Table V times; the paper does not say at which epsilon."""

_NONE = math.nan

TABLE_1 = {
    "records": (8_986_419, 3_804_788, 1_124_454),
    "traces": (5_503, 2_475, 4_693),
    "mean duration (h)": (32 + 44 / 60, 3 + 4 / 60, 3 + 15 / 60),
    "longest duration (h)": (480, 46, 480),
    "sampling interval (s)": (72, 7, 32),
}

TABLE_2 = {
    "Promesse, ε = 50 m": (_NONE, 17.22, 13.91),
    "Promesse, ε = 100 m": (0, 11.06, 7.94),
    "Promesse, ε = 200 m": (0, 2.27, 1.01),
    "Promesse, ε = 500 m": (0, 0, 0),
    "Geo-I, ε = ln(10)/100": (30.72, 42.38, 55.95),
    "Geo-I, ε = ln(6)/200": (6.33, 9.41, 16.31),
    "Geo-I, ε = ln(4)/200": (3.53, 4.50, 9),
    "Geo-I, ε = ln(2)/200": (1.49, 0.85, 0.54),
    "Wait for Me, k = 2, δ = 200 m": (0, 0, 0),
}

TABLE_3 = {
    "Promesse, ε = 50 m": (_NONE, 0, 0),
    "Promesse, ε = 100 m": (0, 0, 0),
    "Promesse, ε = 200 m": (0, 0, 0),
    "Promesse, ε = 500 m": (0, 0, 0),
    "Geo-I, ε = ln(10)/100": (24, 45, 52),
    "Geo-I, ε = ln(6)/200": (50, 120, 140),
    "Geo-I, ε = ln(4)/200": (62, 156, 183),
    "Geo-I, ε = ln(2)/200": (113, 325, 378),
    "Wait for Me, k = 2, δ = 200 m": (13_046, 69_676, 19_222),
}

TABLE_4 = {
    "Promesse, ε = 50 m": (_NONE, 15.14, 25.4),
    "Promesse, ε = 100 m": (6.77, 14.83, 25.23),
    "Promesse, ε = 200 m": (6, 15.1, 27),
    "Promesse, ε = 500 m": (6.9, 18.97, 31.23),
    "Geo-I, ε = ln(10)/100": (0.7, 7.58, 3.08),
    "Geo-I, ε = ln(6)/200": (2.46, 20.43, 10.36),
    "Geo-I, ε = ln(4)/200": (3.39, 27.24, 13.47),
    "Geo-I, ε = ln(2)/200": (7.21, 60.46, 29.98),
    "Wait for Me, k = 2, δ = 200 m": (102, 102, 94),
}

TABLE_5 = {
    "Promesse": (210, 25, 15),
    "Geo-I": (147, 64, 21),
    "Wait for Me": (605 * 60, 70 * 60, 37 * 60),
}

TABLE_6 = {
    "Promesse, ε = 50 m": (_NONE, 51, 206),
    "Promesse, ε = 100 m": (369, 25, 101),
    "Promesse, ε = 200 m": (177, 12, 48),
    "Promesse, ε = 500 m": (64, 4, 18),
    "Geo-I, ε = ln(10)/100": (100, 100, 100),
    "Geo-I, ε = ln(6)/200": (100, 100, 100),
    "Geo-I, ε = ln(4)/200": (100, 100, 100),
    "Geo-I, ε = ln(2)/200": (100, 100, 100),
    "Wait for Me, k = 2, δ = 200 m": (106, 76, 99),
}
