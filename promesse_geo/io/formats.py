"""What a format declares to be recognized and read: `Format`."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from promesse_geo.io.compressed import Head


@dataclass(frozen=True)
class Format:
    """A file format or a data set: one module defines it, and one line in `registry.FORMATS` adds it.

    Parameters
    ----------
    name : str
        Value of `format=` and `--format`.
    label : str
        Name in help texts.
    read : callable
        `read(path, users=, as_traces=, errors=)`, with the further keywords that `options` returns.
    sniff : callable
        `sniff(head, name)` returns whether a file with these first bytes and this name has the format.
    files : tuple of str
        Lower-case glob patterns of file names in a folder that the format claims, the most telling first.
    by_name : bool
        Whether a name that fits is enough. Otherwise `sniff` must accept one of the first such files.
    zipped : bool
        Whether `read` reads zip archives of such files.
    options : callable
        `options(head)` returns the names of the options of `read` for a file with these first bytes. If these are
        `NO_HEAD`, it returns all.
    """

    name: str
    label: str
    read: Callable[..., Any]
    sniff: Callable[[Head, str], bool]
    files: tuple[str, ...]
    by_name: bool = True
    zipped: bool = False
    options: Callable[[Head], Collection[str]] = lambda head: ()

    def claims(self, name: str) -> bool:
        """Return whether the format claims a file by its name."""
        return any(fnmatchcase(name.lower(), pattern) for pattern in self.files)

    def claim(self, files: Sequence[Path]) -> list[Path]:
        """Return the files that the format claims by their names, the most telling first."""
        claimed = (file for pattern in self.files for file in files if fnmatchcase(file.name.lower(), pattern))
        return list(dict.fromkeys(claimed))
