"""The house rules that a few lines of `ast` can hold."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "promesse_geo"
FILES = sorted(PACKAGE.rglob("*.py"))

# Rooms from the lowest floor up: imports only go down, never sideways into another room.
FLOORS = (
    ("kernels", "check", "threads"),
    ("space", "columns", "points", "output"),
    ("records", "fields"),
    ("traces",),
    ("days", "pseudonyms", "pairs"),
    ("mechanisms", "preprocess", "pois", "datasets"),
    ("metrics",),
    ("evaluate", "view", "write"),
    ("files", "publish", "demo"),
    ("paper",),
    ("accessor",),
    ("__init__",),
    ("cli_options",),
    ("cli_measures", "cli_protect"),
    ("cli", "dask"),
    ("__main__",),
)
FLOOR_OF = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
LAZY_ENGINE = {"dask"}  # may import its engine late
LAZY_ROOMS = {"__init__", "accessor"}  # may load heavy rooms when they are first used
LONGEST = 300
LONGER_WITH_REASON = {  # file: why it is one file all the same
    "kernels/stays.py": "kept machine code does not follow what changes in another file",
    "kernels/polyline.py": "the same: search and its bounds are one loop",
}

every_file = pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(PACKAGE)) for file in FILES])


def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(node: ast.AST) -> Iterator[str]:
    """Full names of the modules that an import statement names, with what is taken from them."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are written in full"
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports(file: Path) -> list[str]:
    return [name for node in ast.walk(tree_of(file)) for name in imported(node)]


def rooms_used(file: Path) -> set[str]:
    """Rooms of the package that a file imports from; `__init__` is what `import promesse_geo` gives."""
    used = set()
    for name in imports(file):
        package, *rest = name.split(".")
        if package == PACKAGE.name:
            room = rest[0] if rest else "__init__"
            is_room = (PACKAGE / room).is_dir() or (PACKAGE / f"{room}.py").is_file()
            used.add(room if is_room else "__init__")
    return used


def functions(file: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree_of(file)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def test_every_room_has_its_floor():
    assert {room_of(file) for file in FILES} - set(FLOOR_OF) == set()


@every_file
def test_imports_only_go_down(file):
    room = room_of(file)
    wrong = {used for used in rooms_used(file) - {room} if FLOOR_OF[used] >= FLOOR_OF[room]}
    assert wrong == set()


@every_file
def test_nothing_is_imported_inside_a_function(file):
    late = {name for function in functions(file) for node in ast.walk(function) for name in imported(node)}
    if room_of(file) in LAZY_ENGINE:
        late = {name for name in late if name.split(".")[0] == PACKAGE.name}
    assert late == set()


@every_file
def test_only_the_front_doors_load_rooms_late(file):
    names = {node.id for node in ast.walk(tree_of(file)) if isinstance(node, ast.Name)}
    attributes = {node.attr for node in ast.walk(tree_of(file)) if isinstance(node, ast.Attribute)}
    assert room_of(file) in LAZY_ROOMS or not {"import_module", "__import__"} & (names | attributes)


@pytest.mark.parametrize("file", sorted((PACKAGE / "kernels").glob("[!_]*.py")), ids=lambda file: file.stem)
def test_kernels_import_numpy_and_math_and_never_each_other(file):
    assert set(imports(file)) <= {"numpy", "math", "promesse_geo.kernels.loop", "promesse_geo.kernels.inner"}


@every_file
def test_no_function_takes_anything_that_comes(file):
    assert [node.lineno for node in functions(file) if node.args.vararg or node.args.kwarg] == []


@every_file
def test_nothing_is_printed(file):
    names = [node for node in ast.walk(tree_of(file)) if isinstance(node, ast.Name)]
    assert [node.lineno for node in names if node.id == "print"] == []


@every_file
def test_a_file_is_short_enough_for_one_name(file):
    name = str(file.relative_to(PACKAGE))
    assert len(file.read_text(encoding="utf-8").splitlines()) <= LONGEST or name in LONGER_WITH_REASON


def test_no_file_is_excused_that_needs_no_excuse():
    for name in LONGER_WITH_REASON:
        assert len((PACKAGE / name).read_text(encoding="utf-8").splitlines()) > LONGEST


def test_no_room_is_named_after_nothing():
    names = {part for file in FILES for part in file.relative_to(PACKAGE).with_suffix("").parts}
    assert names & {"utils", "core", "common", "config", "settings"} == set()
