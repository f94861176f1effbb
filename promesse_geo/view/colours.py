"""One colour language for every map and figure: readable by colour-blind eyes, in print and on both themes."""

ORIGINAL = "#D55E00"
"""What was recorded: vermilion of the Okabe-Ito palette."""

PROTECTED = "#0072B2"
"""What is published: blue of the Okabe-Ito palette."""

REMOVED = "#999999"
"""What was there and goes: grey."""

SERIES = (PROTECTED, ORIGINAL, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Mechanisms side by side: the Okabe-Ito palette; markers differ as well."""
