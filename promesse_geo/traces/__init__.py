"""Traces: the arrays that everything works on, and how frames become traces and frames again."""

from promesse_geo.traces.traces import Data, Traces, as_traces, map_traces

__all__ = ["Data", "Traces", "as_traces", "map_traces"]
