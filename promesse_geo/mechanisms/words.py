"""Mechanisms in words, for reports and messages."""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any

from promesse_geo.mechanisms.base import Mechanism, mechanism_classes


def mechanism_in_words(description: Mapping[str, Any]) -> str:
    """Return a mechanism in words: its name, and the parameters that have a unit or are not the default.

    Parameters
    ----------
    description : mapping
        What `Mechanism.description` returns, or the `protection` of Traces.

    Returns
    -------
    str
        Such as "PrivacyZones (radius = 700 m, offset = 600 m), then Promesse (epsilon = 200 m)" for a chain.
    """
    name, parameters = description["mechanism"], description.get("parameters", {})
    if members := members_of(parameters):
        return ", then ".join(map(mechanism_in_words, members))
    texts = ", ".join(_parameters(mechanism_classes().get(name), parameters))
    return f"{name} ({texts})" if texts else str(name)


def chosen_texts(description: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts that a user of the library chose as parameters, which may be keys of users.

    Names of parameters are none, and mechanisms of this package have only choices and durations. Keys of mappings are.
    """
    name, parameters = description["mechanism"], description.get("parameters", {})
    if members := members_of(parameters):
        for member in members:
            yield from chosen_texts(member)
    elif getattr(mechanism_classes().get(name), "__module__", "").partition(".")[0] != __name__.partition(".")[0]:
        for value in parameters.values():
            yield from _texts(value)


def _texts(content: Any) -> Iterator[str]:
    """Yield all texts in content of JSON, keys included."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping):
        yield from (text for pair in content.items() for part in pair for text in _texts(part))
    elif isinstance(content, list | tuple):
        yield from (text for part in content for text in _texts(part))


def members_of(parameters: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the descriptions of the members if the parameters are those of a chain, else an empty list."""
    members = parameters.get("mechanisms")
    if not isinstance(members, list) or not all(isinstance(each, Mapping) and "mechanism" in each for each in members):
        return []
    return list(members)


def _parameters(kind: type[Mechanism] | None, parameters: Mapping[str, Any]) -> Iterator[str]:
    defaults = {} if kind is None else {field.name: field.default for field in fields(kind)}
    units: Mapping[str, str] = {} if kind is None else kind.units
    for name, value in parameters.items():
        if value is not None and (name in units or value != defaults.get(name, MISSING)):
            yield f"{name.replace('_', ' ')} = {_as_text(value)} {units.get(name, '')}".rstrip()


def _as_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return mechanism_in_words(value) if "mechanism" in value else str(dict(value))
    if isinstance(value, list):
        return " and ".join(map(_as_text, value))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:,.{9 if abs(value) >= 1 else 3}g}" if is_number else str(value)
