"""Which files a source stands for, and what their names say of the user."""

import glob
import gzip
import os
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from promesse_geo import check

Source = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""A file, a folder, a glob pattern, or several of these."""

GZIP = b"\x1f\x8b"


def find_files(source: Source, *, endings: Sequence[str], owner: str) -> list[Path]:
    """Return the files of a source in the order of their paths.

    Parameters
    ----------
    source : path, glob pattern, or several of these
        A folder gives the files in it, at any depth, whose names end with one of `endings`.
    endings : sequence of str
        Lower-case, with the dot; upper case in the names will do.
    owner : str
        The reader's name, for messages.

    Returns
    -------
    list of pathlib.Path

    Raises
    ------
    FileNotFoundError, ValueError
        If a path is not there, a folder or a pattern gives nothing, or a file is given twice.
    """
    several = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    if not several:
        raise ValueError(f"Nothing is to be read: 'source' of {owner} is an empty list.")
    files = [file for one in several for file in _files_of(os.fspath(one), endings)]
    twice = len(files) - len({file.resolve() for file in files})
    if twice:
        raise ValueError(f"{check.counted(twice, 'file')} would be read twice: the paths in 'source' overlap.")
    return sorted(files)


def _files_of(path: str, endings: Sequence[str]) -> list[Path]:
    if os.path.isdir(path):
        inside = [file for file in Path(path).rglob("*") if _has_ending(file, endings) and file.is_file()]
        files = [file for file in inside if not _is_hidden(file.relative_to(path))]
        if not files:
            raise FileNotFoundError(f"The folder {path!r} holds no file that ends with {_either(endings)}.")
        return files
    if os.path.exists(path):
        return [Path(path)]
    if not glob.has_magic(path):
        raise FileNotFoundError(f"There is no file or folder {path!r}.")
    files = [Path(file) for file in glob.glob(path, recursive=True) if os.path.isfile(file)]
    if not files:
        raise FileNotFoundError(f"There is no file that fits the pattern {path!r}.")
    return files


def _has_ending(file: Path, endings: Sequence[str]) -> bool:
    return file.name.lower().endswith(tuple(endings))


def _is_hidden(file: Path) -> bool:
    return any(part.startswith(".") for part in file.parts)


def _either(endings: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(endings[:-1]), endings[-1]]))


def name_users(files: Sequence[Path], *, by: str) -> dict[Path, str]:
    """Name each file's user by the file ("file": its name without ending) or the folder ("folder") that it lies in.

    Raises
    ------
    ValueError
        If two files, or files of two folders, would be one user for having the same name.
    """
    names = {file: _stem(file) if by == "file" else file.resolve().parent.name for file in files}
    places = {(name, file.resolve() if by == "file" else file.resolve().parent) for file, name in names.items()}
    alike = len(places) - len(set(names.values()))
    if alike:
        nouns = {"file": ("file has", "files have"), "folder": ("folder has", "folders have")}[by]
        cure = " If each folder is a user, say user='folder' (--user folder)." if by == "file" else ""
        raise ValueError(
            f"{check.counted(alike, *nouns)} the name of another one, so that two users would become one. "
            f"Rename them, or read them one by one.{cure}"
        )
    return names


def _stem(file: Path) -> str:
    return Path(file.stem).stem if file.suffix.lower() == ".gz" else file.stem


def read_bytes(file: Path) -> bytes:
    """Return the content of a file, unpacked where gzip packed it, whatever its name."""
    content = file.read_bytes()
    try:
        return gzip.decompress(content) if content.startswith(GZIP) else content
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{str(file)!r} is packed by gzip, and cut or damaged. Fetch it again.") from error
