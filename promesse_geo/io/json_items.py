"""Read large JSON item by item, with the decoder of the standard library."""

import codecs
import itertools
import json
from collections.abc import Collection, Generator, Iterator
from contextlib import suppress
from json.decoder import WHITESPACE  # type: ignore[attr-defined]
from typing import Any, NoReturn

_DECODE = json.JSONDecoder().raw_decode
_SHOWN, _MEMBERS, _LETTERS = 10, 100, 80  # items, members of objects and letters in outlines


def json_items(name: str, content: bytes, *, arrays: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the items of arrays in a JSON text, or in several that follow one another, as JSON lines do.

    Only one item exists at a time, so that memory holds the text and what the caller keeps.

    Parameters
    ----------
    name : str
        Name of the file in messages.
    content : bytes
        In UTF-8, UTF-16 or UTF-32.
    arrays : collection of str
        Keys of the outermost object whose arrays are read item by item.

    Yields
    ------
    (str, object)
        The key of the array and an item of it; an empty key for an item of an outermost array. After each outermost
        object, the key `"{}"` and its members, without the items that were read.

    Raises
    ------
    ValueError
        If the text is not JSON to its end; the message names the file and the line.

    Examples
    --------
    >>> list(json_items("a.json", b'{"version": 1, "points": [7, 8]}', arrays=["points"]))
    [('points', 7), ('points', 8), ('{}', {'version': 1, 'points': []})]
    """
    text = _decode_text(name, content)
    place = _after_blanks(text, 0)
    if place == len(text):
        raise ValueError(f"{name!r} is empty.")
    reader = _Reader(name, text)
    while place < len(text):
        if text[place] == "{":
            place = yield from reader.read_object(place, arrays)
        elif text[place] == "[":
            place = yield from reader.read_array(place, "")
        else:
            reader.fail(place, "an object or an array is expected")
        place = _after_blanks(text, place)


def json_outlines(content: bytes) -> Iterator[bytes]:
    """Yield short JSON texts that show what a JSON text holds, however long its values are.

    Each shows the first items of one array of the outermost object, of the outermost array, or the first of several
    objects, with long texts and arrays cut. Where the text is cut or damaged, they end.

    Examples
    --------
    >>> list(json_outlines(b'{"about": "' + b"a" * 9999 + b'", "points": [7, 8]}'))[:2]
    [b'{"points": [7]}', b'{"points": [7, 8]}']
    """
    shown: dict[str, list[Any]] = {}
    text = content.decode(json.detect_encoding(content), errors="ignore")
    with suppress(ValueError):
        for key, item in json_items("", text.encode(errors="replace"), arrays=_Everything()):
            items = shown.setdefault(key, [])
            if len(items) < _SHOWN:
                items.append(_pruned(item))
                texts = items if key == "{}" else [{key: items} if key else items]
                yield b"\n".join(json.dumps(each, ensure_ascii=False).encode(errors="replace") for each in texts)
            elif key in ("", "{}"):  # nothing else follows
                return


class _Everything(frozenset[str]):
    """Holds every text."""

    def __contains__(self, item: object) -> bool:
        return True


def _pruned(value: Any) -> Any:
    """Return a value with the beginnings of its texts and arrays."""
    if isinstance(value, dict):
        return {key: _pruned(member) for key, member in itertools.islice(value.items(), _MEMBERS)}
    if isinstance(value, list):
        return [_pruned(item) for item in value[:_SHOWN]]
    return value[:_LETTERS] if isinstance(value, str) else value


def _decode_text(name: str, content: bytes) -> str:
    try:
        return content.removeprefix(codecs.BOM_UTF8).decode(json.detect_encoding(content))
    except UnicodeDecodeError as error:
        raise ValueError(f"{name!r} is not JSON, or damaged: byte {error.start:,} is no text in UTF-8.") from error


def _after_blanks(text: str, place: int) -> int:
    end: int = WHITESPACE.match(text, place).end()
    return end


class _Reader:
    """Read a text from given places; each method returns the place after what it read."""

    def __init__(self, name: str, text: str) -> None:
        self._name, self._text = name, text

    def fail(self, place: int, reason: str) -> NoReturn:
        """Raise the error for a place in the text."""
        line = self._text.count("\n", 0, place) + 1
        column = place - self._text.rfind("\n", 0, place)
        where = f"line {line:,}, character {column:,}"
        raise ValueError(f"{self._name!r} is not JSON, or cut or damaged ({where}: {reason}).")

    def read_value(self, place: int) -> tuple[Any, int]:
        """Return the value at a place, and the place after it and what is blank."""
        try:
            value, end = _DECODE(self._text, place)
        except json.JSONDecodeError as error:
            self.fail(error.pos, error.msg.lower())
        except RecursionError:
            self.fail(place, "too many arrays or objects inside of one another")
        except ValueError:
            self.fail(place, "a number with too many digits")
        return value, _after_blanks(self._text, end)

    def read_array(self, place: int, key: str) -> Generator[tuple[str, Any], None, int]:
        """Yield the items of the array at a place."""
        place = _after_blanks(self._text, place + 1)
        while not self._text.startswith("]", place):
            value, place = self.read_value(place)
            yield key, value
            place = self._after_comma(place, "]")
        return place + 1

    def read_object(self, place: int, arrays: Collection[str]) -> Generator[tuple[str, Any], None, int]:
        """Yield the items of the arrays in the object at a place, and its other members."""
        others: dict[str, Any] = {}
        place = _after_blanks(self._text, place + 1)
        while not self._text.startswith("}", place):
            if not self._text.startswith('"', place):
                self.fail(place, "a key is expected")
            key, place = self.read_value(place)
            if not self._text.startswith(":", place):
                self.fail(place, "':' is expected")
            place = _after_blanks(self._text, place + 1)
            if key in arrays and self._text.startswith("[", place):
                place = yield from self.read_array(place, key)
                others[key] = []
            else:
                others[key], place = self.read_value(place)
            place = self._after_comma(_after_blanks(self._text, place), "}")
        yield "{}", others
        return place + 1

    def _after_comma(self, place: int, end: str) -> int:
        """Return the place of the next item, or of the end of an array or object."""
        if self._text.startswith(end, place):
            return place
        if not self._text.startswith(",", place):
            self.fail(place, f"',' or '{end}' is expected")
        following = _after_blanks(self._text, place + 1)
        if self._text.startswith(end, following):
            self.fail(following, "a value is expected")
        return following
