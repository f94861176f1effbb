"""Colours of all maps and figures: distinct for colour-blind readers, in print and on light and dark backgrounds."""

ORIGINAL = "#D55E00"
"""Original data: vermilion of the Okabe-Ito palette."""

PROTECTED = "#0072B2"
"""Protected data: blue of the Okabe-Ito palette."""

REMOVED = "#999999"
"""Parts of the original that are not published: grey."""

HIT = "#CC79A7"
"""A point of interest that the attack still finds: reddish purple."""

MISSED = "#009E73"
"""A point of interest that the attack no longer finds: bluish green."""

FALSE = "#E69F00"
"""A point of interest that the attack finds where the original has none: orange."""

SERIES = (PROTECTED, MISSED, HIT, FALSE, "#56B4E9", "#000000")
"""Several mechanisms side by side: the Okabe-Ito palette without `ORIGINAL`."""

SPEEDS = ("#2F6FDE", "#7B58D6", "#B945BE", "#DD4A80", "#EE7733", "#E8A800")
"""Classes of speed from slow to fast: blue, violet, red, orange."""

GROUND = "#888888"
"""Streets and areas below the data."""

HEAT = ("#56B4E9", "#9A5FC9", "#E0457B", "#FFC43D")
"""Heat maps from few records to many: blue, violet, red, yellow."""
