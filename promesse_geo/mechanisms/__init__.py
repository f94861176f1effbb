"""Protection mechanisms: one file each."""

# Classes have their colours in figures by the order in which they are defined.
from promesse_geo.mechanisms.base import Mechanism, chained, mechanism_classes
from promesse_geo.mechanisms.geo_indistinguishability import GeoIndistinguishability
from promesse_geo.mechanisms.promesse import Promesse
from promesse_geo.mechanisms.published_groups import WaitForMeReport
from promesse_geo.mechanisms.wait_for_me import WaitForMe

# isort: split
from promesse_geo.mechanisms.chain import Chain
from promesse_geo.mechanisms.privacy_zones import PrivacyZones
from promesse_geo.mechanisms.recommendations import recommended
from promesse_geo.mechanisms.words import mechanism_in_words, members_of

__all__ = ["Chain", "GeoIndistinguishability", "Mechanism", "PrivacyZones", "Promesse", "WaitForMe", "WaitForMeReport"]
__all__ += ["chained", "mechanism_classes", "mechanism_in_words", "members_of", "recommended"]
