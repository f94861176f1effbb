"""Errors and warnings of the library on the command line, with the names of options instead of those of parameters."""

import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import click

from promesse_geo.cli import layout

_EXPECTED = (ValueError, TypeError, KeyError, OSError, MemoryError, ImportError)
_PYTHON = r"(?:'[\w-]+'|\w+=(?:'[^']*'|True|False|None|[\d.]+|)|(?:\w+\.)*[A-Za-z_]\w*\((?:[^()]|\([^()]*\))*\))"
_TWINS = re.compile(
    rf"{_PYTHON}(?:(?:, then |, | or | and ){_PYTHON})* \(((?:--|promesse-geo |ogr2ogr )(?:'[^']*'|[^)'])+)\)"
)  # what is written in Python, and behind it in parentheses what is typed instead
_PARAMETER = re.compile(
    r"[Tt]he '(\w+)' parameter(?: of (?:[a-z]\w*|([A-Z]\w*)(?:\.\w+)?))?\b"
)  # of a function, a class
_ABSENT = re.compile(r"([Tt]he )(user|time|lon|lat|segment)( column (?=(?:(?!\. ).)*do(?:es)? not exist))")
_DETAILS = re.compile(r"\b([A-Z]\w+)\((?:[^()]|\([^()]*\))*\)")  # of a metric or mechanism with its parameters
_CALLED = {
    "path": ("output", "out"),
    "keep_user": ("keep_users",),
    "errors": ("skip",),
    "radius": ("zone_radius",),
    "offset": ("zone_offset",),
    "seed": ("secret_file",),
    "n_jobs": ("jobs",),
}
"""Names of options, by those of parameters that are called otherwise."""
_RENAMED = re.compile(r"(?<![\w-])--(radius|offset)(?![\w-])")  # options that have another name in publish


@contextmanager
def usage_errors() -> Iterator[None]:
    """Convert errors of parameters to usage errors."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise click.UsageError(with_options_named(str(error))) from error


@contextmanager
def expected_errors() -> Iterator[None]:
    """Report expected errors and warnings in one line each on stderr."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *rest: layout.say(f"Warning: {with_options_named(str(message))}")
        try:
            yield
        except BrokenPipeError:  # what reads standard output has ended; click ends the command silently
            raise
        except _EXPECTED as error:
            words = error.args[0] if isinstance(error, KeyError) else str(error)
            if isinstance(error, OSError) and error.filename is not None and error.strerror:  # of the system
                words = f"{os.fspath(error.filename)!r}: {error.strerror}."
            if isinstance(error, MemoryError) and not words:  # Python's own has no words
                words = "There is not enough memory."
            words = " ".join((words, *(_DETAILS.sub(r"\1", note) for note in getattr(error, "__notes__", ()))))
            layout.say(f"Error: {with_options_named(' '.join(words.split()))}")
            sys.exit(1)


def with_options_named(words: str) -> str:
    """Replace names of parameters by those of options of the command that runs.

    Examples
    --------
    >>> with_options_named("Skip them with errors='skip' (--skip).")
    'Skip them with --skip.'
    """
    words = _PARAMETER.sub(_option_of, _ABSENT.sub(r"\1--\2\3", _TWINS.sub(r"\1", words)))
    return _RENAMED.sub(_option_called, words)


def _known_options() -> dict[str, click.Parameter]:
    """Return the options and arguments of the command that runs, by name."""
    context = click.get_current_context(silent=True)
    return {} if context is None else {str(option.name): option for option in context.command.params}


def _option_called(match: re.Match[str]) -> str:
    """Return an option of other commands under the name that it has in the command that runs."""
    known, name = _known_options(), match[1].replace("-", "_")
    called = next((each for each in _CALLED[name] if each in known), "") if name not in known else ""
    return f"--{called.replace('_', '-')}" if called else match[0]


def _option_of(match: re.Match[str]) -> str:
    """Return the option or argument of a parameter, with the class whose parameter it is, if it is one."""
    known = _known_options()
    name = next((each for each in (match[1], *_CALLED.get(match[1], ())) if each in known), "")
    if name:
        option = known[name]
        called = max(option.opts, key=len) if isinstance(option, click.Option) else option.human_readable_name
    elif "parameter" in known:
        called = f"--parameter {match[1]}"
    else:
        return match[0]
    return f"{called} of {match[2]}" if match[2] else called
