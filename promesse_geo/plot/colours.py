"""One colour language for every map and figure: readable by colour-blind eyes, in print and on both themes."""

ORIGINAL = "#D55E00"
"""What was recorded: vermilion of the Okabe-Ito palette."""

PROTECTED = "#0072B2"
"""What is published: blue of the Okabe-Ito palette."""

REMOVED = "#999999"
"""What was there and goes: grey."""

HIT = "#CC79A7"
"""A point of interest that the attack still finds: reddish purple."""

MISSED = "#009E73"
"""A point of interest that the attack no longer finds: bluish green."""

FALSE = "#E69F00"
"""What the attack takes for a point of interest where none was: orange."""

SERIES = (PROTECTED, MISSED, HIT, FALSE, "#56B4E9", "#000000")
"""Mechanisms side by side: the Okabe-Ito palette without what was recorded; lines or markers differ as well."""
