"""Parse XML with expat: any encoding, prefixes that are not declared, no document types, errors with lines."""

import codecs
import re
from collections.abc import Callable, Mapping
from typing import TypeVar
from xml.parsers import expat

from promesse_geo.io.contents import Head

T = TypeVar("T")

_CHUNK = 1 << 20  # bytes for expat at a time
_LONGEST = 16 * _CHUNK  # tag or comment: old versions of expat parse it again from its start with every chunk
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def parse_xml(name: str, content: bytes, connect: Callable[[expat.XMLParserType], T], *, label: str, root: str) -> T:
    """Parse a file to its end.

    Parameters
    ----------
    name : str
        The file's name in messages.
    content : bytes
        The file's content.
    connect : callable
        Sets the handlers of a parser and returns what they fill. Names are those of the namespace, a line break and
        the name. If the file uses prefixes without declaring them, it is called again, and names are `prefix:name`.
    label, root : str
        Names of the format and of its outermost element, in messages.

    Returns
    -------
    object
        What `connect` returned.

    Raises
    ------
    ValueError
        If the file is not well-formed, declares a document type, or a handler raises.
    """
    encoding = None
    if content.startswith(_UTF16):
        content, encoding = content.decode("utf-16", errors="replace").encode(), "utf-8"
    content = content.removeprefix(codecs.BOM_UTF8).lstrip()
    if not content:
        raise ValueError(f"{name!r} is not {label}: it is empty.")
    try:
        try:
            return _feed(content, expat.ParserCreate(encoding, "\n"), connect, label=label)
        except expat.ExpatError:  # many files use prefixes without declaring them
            return _feed(content, expat.ParserCreate(encoding), connect, label=label)
    except expat.ExpatError as error:
        if b"<" not in content[:2]:
            raise ValueError(f"{name!r} is not {label}: it has no element <{root}>.") from error
        where = f"line {error.lineno:,}: {expat.ErrorString(error.code)}"
        raise ValueError(f"{name!r} is not {label}, or cut or damaged ({where}).") from error
    except (ValueError, LookupError) as error:  # from a handler, or of an encoding that expat lacks
        raise ValueError(f"{name!r} is not {label}: {error}.") from error


def _feed(content: bytes, parser: expat.XMLParserType, connect: Callable[[expat.XMLParserType], T], *, label: str) -> T:
    def refuse(name: str, system: str | None, public: str | None, inside: bool) -> None:
        raise ValueError(f"it declares a document type (DOCTYPE), and {label} has none")

    parser.buffer_text = True
    result = connect(parser)
    parser.StartDoctypeDeclHandler = refuse
    for start in range(0, len(content), _CHUNK):
        parser.Parse(content[start : start + _CHUNK])
        if start - parser.CurrentByteIndex > _LONGEST:
            raise ValueError(f"line {parser.CurrentLineNumber:,} begins a tag or comment of more than 16 MB")
    parser.Parse(b"", True)
    return result


def local_name(name: str) -> str:
    """Return a name without namespace or prefix."""
    return re.split("[\n:]", name)[-1]


def watch(
    parser: expat.XMLParserType,
    *,
    root: str,
    begins: Mapping[str, Callable[[list[str]], None]],
    texts: Mapping[str, Callable[[list[str], str], None]],
    ends: Mapping[str, Callable[[list[str]], None]],
) -> None:
    """Set handlers that call functions by the local names of elements.

    Parameters
    ----------
    parser : pyexpat parser
        The parser.
    root : str
        Local name of the outermost element.
    begins, ends : mapping of str to callable
        Called at the start and end of an element with the local names of the elements around it, outermost first.
    texts : mapping of str to callable
        Called at the end of an element with these names and its text.
    """
    path: list[str] = []
    text: list[str] = []

    def begin(name: str, attributes: Mapping[str, str]) -> None:
        local = local_name(name)
        if not path and local != root:
            raise ValueError(f"it has no element <{root}>")
        if local in begins:
            begins[local](path)
        if local in texts:
            text.clear()
            parser.CharacterDataHandler = text.append
        path.append(local)

    def end(_: str) -> None:
        local = path.pop()
        if local in texts:
            parser.CharacterDataHandler = None
            texts[local](path, "".join(text))
            text.clear()
        if local in ends:
            ends[local](path)

    parser.StartElementHandler, parser.EndElementHandler = begin, end


def has_root(head: Head, root: re.Pattern[bytes]) -> bool:
    """Return whether a file is XML, in any encoding, and its first bytes match a pattern for its outermost element."""
    text = head.content.replace(b"\0", b"")
    return root.search(text) is not None and text.lstrip(b"\xef\xbb\xbf\xff\xfe \r\n\t").startswith(b"<")


def root_pattern(root: str) -> re.Pattern[bytes]:
    """Return the pattern of the start of an element, with any prefix."""
    return re.compile(rb"<(?:[^\s<>:!?/]+:)?" + root.encode() + rb"[\s/>]")
