"""Find the files of a source, name their users, and declare their formats."""

import glob
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pandas as pd

from promesse_geo.io.contents import Head, check_exists, check_no_pipe
from promesse_geo.messages import DroppedWarning, counted, warn
from promesse_geo.traces.frames import conversion_of, type_name
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_path

Source = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""A file, a folder, a glob pattern, or several of these."""


_COMPANION = re.compile(r"[._]|thumbs\.db|desktop\.ini|(readme|licen[cs]e|labels)\b|.*-(journal|wal|shm)$")
COMPANIONS = {
    ".shp": (".dbf", ".shx", ".prj", ".cpg", ".sbn", ".sbx", ".qix", ".qpj", ".qmd", ".ain", ".aih", ".shp.xml"),
    ".tab": (".dat", ".map", ".id", ".ind"),
    ".mif": (".mid",),
    ".gml": (".xsd", ".gfs"),
}
"""Extensions of the files that belong to a file of another extension and the same name, and are read with it."""
_COMPRESSED = (".gz", ".bz2", ".zst")
_LISTED = 3  # endings in a warning


def find_files(source: Source, *, endings: Sequence[str], owner: str) -> list[Path]:
    """Return the files of a source in the order of their paths.

    Parameters
    ----------
    source : path, glob pattern, or several of these
        A folder stands for the files in it, at any depth, that end with one of `endings`. Links to folders outside of
        it are followed.
    endings : sequence of str
        Lower case, with the dot; the case of names is ignored.
    owner : str
        Name of the reader in messages.

    Returns
    -------
    list of pathlib.Path
        Including what cannot be read, so that reading it fails: links to nothing, folders without permission, and
        folders that are named like a file but hold none.

    Raises
    ------
    FileNotFoundError, ValueError
        If a path does not exist, a folder or a pattern has no file, or a file is given twice.
    """
    paths = as_paths(source, owner=owner)
    files = [file for path in paths for file in _files_of(os.fspath(path), endings)]
    check_distinct(files)
    warn_unread(paths, lambda name: name.endswith(tuple(endings)))
    return sorted(files)


UNREAD = "files (of other endings)"
"""What `warn_unread` counts."""


def warn_unread(source: Sequence[Path], is_read: Callable[[str], bool]) -> None:
    """Warn once of the files in folders that have other endings, but for hidden files and known companions.

    Parameters
    ----------
    source : sequence of pathlib.Path
        Files, which are not looked at, and folders.
    is_read : callable
        Returns whether a file with this name, in lower case, is read.
    """
    unread: Counter[str] = Counter()
    for path in filter(Path.is_dir, source):
        for _, folders, files in os.walk(path):
            folders[:] = [name for name in folders if not name.startswith(".")]
            names = {name.lower() for name in files}
            unread.update(
                os.path.splitext(name)[1] or "none"
                for name in names
                if not is_read(name) and not _COMPANION.match(name) and not _belongs(name, names)
            )
    if unread:
        of_endings = ", ".join(ending for ending, _ in unread.most_common(_LISTED))
        more = ", …" if len(unread) > _LISTED else ""
        files_were = counted(unread.total(), "file was", "files were")
        message = f"{files_were} not read, because the ending is another one ({of_endings}{more})."
        warn(DroppedWarning(message, {UNREAD: unread.total()}))


def _belongs(name: str, names: Collection[str]) -> bool:
    """Whether a file is a part of one of the files beside it, as .dbf of .shp; names are in lower case."""
    for ending, companions in COMPANIONS.items():
        stems = (name.removesuffix(companion) for companion in companions if name.endswith(companion))
        if any(f"{stem}{ending}" in names for stem in stems):
            return True
    return False


def as_paths(source: Source, *, owner: str) -> list[Path]:
    """Return the paths of a source; raise ValueError if there is none, TypeError for data that are no file."""
    check_is_no_data(source, owner=owner)
    if isinstance(source, (str, bytes, os.PathLike)) or not isinstance(source, Iterable) or hasattr(source, "read"):
        return [as_path(source, owner=owner)]
    paths = list(source)
    if not paths:
        raise ValueError(f"The 'source' parameter of {owner} must be a path or a list of paths. Got an empty list.")
    return [as_path(path, owner=owner) for path in paths]


def as_path(path: Any, *, owner: str) -> Path:
    """Return a path; raise NotADirectoryError for a file with a slash after its name, which `Path` would drop.

    An open file and data in memory are no path: TypeError.
    """
    check_is_no_data(path, owner=owner)
    cure = "Save the content to a file, and pass its path."
    place = check_path(path, name="source", owner=owner, cure=cure)
    if os.path.basename(os.fspath(path)) in ("", ".") and place.is_file():
        raise NotADirectoryError(f"{os.fspath(path)!r} is a file, not a folder. Omit what follows its name.")
    return place


def check_is_no_data(source: Any, *, owner: str) -> None:
    """Raise TypeError for a frame, a table or other data in memory, with what takes it."""
    if isinstance(source, (pd.DataFrame, Traces)) or hasattr(source, "trajectories"):
        remedy = "Functions take it as it is, as in pg.describe(data)."
    elif not (conversion := conversion_of(source)):
        return
    elif conversion.startswith("pg."):
        remedy = f"Read it with {conversion}."
    else:
        remedy = f"Functions take what {conversion} returns, as in pg.describe(…)."
    raise TypeError(f"{owner} reads files. Got a {type_name(source)} instead. {remedy}")


def check_distinct(files: Sequence[Path]) -> None:
    """Raise ValueError if a file is given twice."""
    twice = len(files) - len({file.resolve() for file in files})
    if twice:
        raise ValueError(f"{counted(twice, 'file')} would be read twice: the paths in 'source' overlap.")


def _files_of(path: str, endings: Sequence[str]) -> list[Path]:
    def fits(file: Path) -> bool:
        return file.name.lower().endswith(tuple(endings))

    if os.path.isdir(path):
        files = list(files_inside(path, fits))
        if not files:
            raise FileNotFoundError(f"The folder {path!r} has no file that ends with {' or '.join(endings)}.")
        return files
    if os.path.exists(path):
        check_no_pipe(Path(path))
        return [Path(path)]
    if not glob.has_magic(path):
        check_exists(path)
    matches = [Path(match) for match in glob.glob(path, recursive=True)]
    files = [match for match in matches if not match.is_dir()]
    files += [match for match in matches if match.is_dir() and not set(files_inside(match, fits)) <= set(files)]
    if not files:
        raise FileNotFoundError(f"No file matches the pattern {path!r}.")
    return files


def is_geodatabase(path: Path) -> bool:
    """Whether a folder is a file geodatabase of ArcGIS."""
    return path.suffix.lower() == ".gdb" and path.is_dir() and any(path.glob("*.gdbtable"))


def files_inside(root: str | os.PathLike[str], fits: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield the files in a folder that fit, at any depth, and folders that cannot be read; hidden ones are ignored."""
    unreadable: list[OSError] = []
    inside = os.path.realpath(root)
    seen = {inside}
    for folder, names, files in os.walk(root, onerror=unreadable.append, followlinks=True):
        for name in list(names):
            path = Path(folder, name)
            real = os.path.realpath(path)
            if name.startswith(".") or (path.is_symlink() and (real in seen or Path(real).is_relative_to(inside))):
                names.remove(name)
            elif fits(path) and os.access(path, os.R_OK | os.X_OK) and not any(files_inside(path, fits)):
                yield path
            seen.add(real)
        yield from (Path(folder, name) for name in files if not name.startswith(".") and fits(Path(name)))
    yield from (Path(error.filename) for error in unreadable)


_FOLDERS: dict[str, Callable[[Path], Path]] = {
    "file": lambda file: file,
    "folder": lambda file: file.parent,
    "folder-2": lambda file: file.parent.parent,
}
BY_PLACE = tuple(_FOLDERS)
"""Values of `user` that take the user from the name of the file, its folder, or the folder above that."""


def name_users(files: Sequence[Path], *, by: str) -> dict[Path, str]:
    """Return the user of each file, from the place of the file.

    Parameters
    ----------
    files : sequence of pathlib.Path
        The files.
    by : {"file", "folder", "folder-2"}
        The file's name without extension, its folder's name, or the name of the folder above that, as for
        `<participant>/gps/*.csv`.

    Raises
    ------
    ValueError
        If two files, or two folders, have the same name.
    """
    places = {file: _FOLDERS[by](file.resolve()) for file in files}
    names = {file: user_of_file(file) if by == "file" else places[file].name for file in files}
    alike = len({(names[file], places[file]) for file in files}) - len(set(names.values()))
    if alike:
        what = (
            counted(alike, "file has", "files have") if by == "file" else counted(alike, "folder has", "folders have")
        )
        others = [f"user={other!r} (--user {other})" for other in _FOLDERS if other not in ("file", by)]
        raise ValueError(
            f"{what} the name of another one, so that two users would become one. Rename them, or read them one by "
            f"one. If each folder is a user, pass {' or, for the folder above, '.join(others)}."
        )
    return names


def user_of_file(file: Path) -> str:
    """Return the name of a file without extension, which is its user if it names none."""
    return Path(file.stem).stem if file.suffix.lower() in _COMPRESSED else file.stem


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
        Lower-case glob patterns of file names in a folder that the format claims, the most specific first.
    by_name : bool
        Whether a name that fits is enough. Otherwise `sniff` must accept one of the first such files.
    zipped : bool
        Whether `read` reads zip archives of such files.
    joins : bool
        Whether `read` takes a list of files, and what it reads may be joined with files of other formats.
    options : callable
        `options(head)` returns the names of the options of `read` for a file with these first bytes. If these are
        `NO_HEAD`, it returns all.
    remarks : str
        What is read and what is left out, for the documentation; empty if the format has a function with a docstring.
    library : str
        The libraries that parse the files, for the documentation.
    """

    name: str
    label: str
    read: Callable[..., Any]
    sniff: Callable[[Head, str], bool]
    files: tuple[str, ...]
    by_name: bool = True
    zipped: bool = False
    joins: bool = True
    options: Callable[[Head], Collection[str]] = lambda head: ()
    remarks: str = ""
    library: str = "Python (json)"

    def claims(self, name: str) -> bool:
        """Return whether the format claims a file by its name."""
        return any(fnmatchcase(name.lower(), pattern) for pattern in self.files)

    def claim(self, files: Sequence[Path]) -> list[Path]:
        """Return the files that the format claims by their names, the most specific first."""
        claimed = (file for pattern in self.files for file in files if fnmatchcase(file.name.lower(), pattern))
        return list(dict.fromkeys(claimed))


def by_endings(endings: Iterable[str]) -> tuple[str, ...]:
    """Return the patterns of file names with these endings."""
    return tuple(f"*{ending}" for ending in endings)
