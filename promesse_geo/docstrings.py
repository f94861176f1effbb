"""Docstrings of methods, completed from those of the functions that they stand for."""

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

_Verb = TypeVar("_Verb", bound=Callable[..., Any])
_HEADING = re.compile(r"^([A-Z][a-z]+)\n-{3,}\n", re.MULTILINE)
_OF_TYPE = re.compile(r"Of the type of `data`[:,;] (\w)")
_ENTRY = re.compile(r"^(?=\S)", re.MULTILINE)
_PROTECTED = """\
protected : geopandas.GeoDataFrame
    The protected data, whose users are those of this frame; users that the mechanism dropped may be missing.
"""


def documented_as(source: object, other: object = None) -> Callable[[_Verb], _Verb]:
    """Complete the docstring of a method from those of the functions or classes that it stands for.

    The method keeps its own summary and sections. Parameters that it does not have are dropped: the data, and the names
    of its columns.

    Parameters
    ----------
    source, other : function or class
        Objects with numpydoc docstrings. Sections that `source` lacks come from `other`.

    Returns
    -------
    callable
        A decorator that returns the method itself.
    """

    def complete(verb: _Verb) -> _Verb:
        docs = [_sections(verb), _sections(source), _sections(other) if other else {}]
        entries = {"protected": _PROTECTED}
        for doc in reversed(docs):
            for entry in _ENTRY.split(doc.get("Parameters", "")):
                entries |= {entry.partition(" :")[0]: entry}
        names = [name for name in inspect.signature(verb).parameters if name != "self"]
        text = "\n\n".join([docs[0][""], docs[1][""].partition("\n\n")[2]]).rstrip()
        if names:
            text += "\n\nParameters\n----------\n" + "\n".join(
                entries[name].rstrip() for name in names if name in entries
            )
        for section in ("Returns", "Raises", "Notes", "References", "Examples"):
            content = next((doc[section] for doc in docs if section in doc), "")
            if section == "Returns":  # verbs return frames only
                content = _OF_TYPE.sub(
                    lambda match: match[1].upper(), content.replace("GeoDataFrame or Traces", "GeoDataFrame")
                )
            text += f"\n\n{section}\n{'-' * len(section)}\n{content.rstrip()}" if content else ""
        verb.__doc__ = text + "\n"
        return verb

    return complete


def _sections(source: object) -> dict[str, str]:
    """Split a docstring at its headings; the text before them is under the empty key."""
    text, *parts = _HEADING.split(inspect.getdoc(source) or "")
    return {"": text.strip(), **dict(zip(parts[::2], parts[1::2], strict=True))}
