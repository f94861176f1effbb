"""Wait for Me: groups of k traces that go together (Abul, Bonchi and Nanni 2010)."""

from promesse_geo.mechanisms.wait_for_me.mechanism import WaitForMe
from promesse_geo.mechanisms.wait_for_me.publication import WaitForMeReport

__all__ = ["WaitForMe", "WaitForMeReport"]
