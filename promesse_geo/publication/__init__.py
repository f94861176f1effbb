"""Publication in one step: choices, cleaning, protection, audit and the report."""

from promesse_geo.publication.folders import publish_parquet
from promesse_geo.publication.result import Publication
from promesse_geo.publication.steps import publish

__all__ = ["Publication", "publish", "publish_parquet"]
