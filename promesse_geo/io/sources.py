"""Find the files of a source, and name their users."""

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from promesse_geo.messages import counted

Source = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""A file, a folder, a glob pattern, or several of these."""


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
    files = [file for path in as_paths(source, owner=owner) for file in _files_of(os.fspath(path), endings)]
    check_distinct(files)
    return sorted(files)


def as_paths(source: Source, *, owner: str) -> list[Path]:
    """Return the paths of a source; raise ValueError if there is none."""
    paths = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    if not paths:
        raise ValueError(f"The 'source' parameter of {owner} must be a path or a list of paths. Got an empty list.")
    return [Path(path) for path in paths]


def check_distinct(files: Sequence[Path]) -> None:
    """Raise ValueError if a file is given twice."""
    twice = len(files) - len({file.resolve() for file in files})
    if twice:
        raise ValueError(f"{counted(twice, 'file')} would be read twice: the paths in 'source' overlap.")


def _files_of(path: str, endings: Sequence[str]) -> list[Path]:
    if os.path.isdir(path):
        files = list(files_inside(path, partial(_has_ending, endings=endings)))
        if not files:
            raise FileNotFoundError(f"The folder {path!r} has no file that ends with {_either(endings)}.")
        return files
    if os.path.exists(path):
        check_no_pipe(Path(path))
        return [Path(path)]
    if not glob.has_magic(path):
        check_exists(path)
    matches = [Path(match) for match in glob.glob(path, recursive=True)]
    files = [match for match in matches if not match.is_dir()]
    files += [match for match in matches if match.is_dir() and not _is_covered(match, files, endings)]
    if not files:
        raise FileNotFoundError(f"No file matches the pattern {path!r}.")
    return files


def check_exists(path: str | os.PathLike[str]) -> None:
    """Raise FileNotFoundError if a path does not exist or is a link to nothing."""
    if os.path.islink(path) and not os.path.exists(path):
        raise FileNotFoundError(f"{os.fspath(path)!r} is a link to nothing.")
    if not os.path.exists(path):
        raise FileNotFoundError(f"The file or folder {os.fspath(path)!r} does not exist.")


def check_no_pipe(path: Path) -> None:
    """Raise ValueError for a pipe or a device, which cannot be read twice."""
    if not path.is_file() and not path.is_dir():
        raise ValueError(f"{str(path)!r} is a pipe or a device. Save its content to a file first.")


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


def _is_covered(folder: Path, files: Sequence[Path], endings: Sequence[str]) -> bool:
    """Return whether all files in a folder are among the files."""
    return set(files_inside(folder, partial(_has_ending, endings=endings))) <= set(files)


def _has_ending(file: Path, endings: Sequence[str]) -> bool:
    return file.name.lower().endswith(tuple(endings))


def _either(endings: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(endings[:-1]), endings[-1]]))


def name_users(files: Sequence[Path], *, by: str) -> dict[Path, str]:
    """Return the user of each file: its name without extension (`by="file"`), or its folder's name (`by="folder"`).

    Raises
    ------
    ValueError
        If two files, or two folders, have the same name.
    """
    names = {file: _stem(file) if by == "file" else file.resolve().parent.name for file in files}
    places = {(name, file.resolve() if by == "file" else file.resolve().parent) for file, name in names.items()}
    alike = len(places) - len(set(names.values()))
    if alike:
        nouns = {"file": ("file has", "files have"), "folder": ("folder has", "folders have")}[by]
        cure = " If each folder is a user, pass user='folder' (--user folder)." if by == "file" else ""
        raise ValueError(
            f"{counted(alike, *nouns)} the name of another one, so that two users would become one. "
            f"Rename them, or read them one by one.{cure}"
        )
    return names


def _stem(file: Path) -> str:
    return Path(file.stem).stem if file.suffix.lower() == ".gz" else file.stem


def read_stored(file: Path) -> bytes:
    """Return the content of a file; raise ValueError if it cannot be read."""
    try:
        check_is_file(file)
        return file.read_bytes()
    except OSError as error:
        if error.errno is None:  # from check_is_file
            raise
        raise ValueError(f"{str(file)!r} cannot be read: {error.strerror}.") from error


def check_is_file(path: Path) -> None:
    """Raise an error if a path is a folder, does not exist, or is a pipe, which would block."""
    if path.is_dir():
        list(path.iterdir())  # raises PermissionError
        raise ValueError(f"{str(path)!r} is a folder. Pass a file.")
    check_exists(path)
    check_no_pipe(path)
