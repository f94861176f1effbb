"""Rules of the architecture that a few lines of `ast` can hold."""

import ast
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "promesse_geo"
FILES = sorted(PACKAGE.rglob("*.py"))

# Layers from the lowest up: a package imports from lower layers and from itself only.
LAYERS = (
    ("kernels", "messages", "threads", "docstrings"),
    ("validation",),
    ("traces",),
    ("preprocess", "stays", "synthetic"),
    ("mechanisms",),
    ("io", "metrics"),
    ("evaluation",),
    ("bulk",),
    ("plot",),
    ("audit",),
    ("paper", "demo"),
    ("publication",),
    ("accessor",),
    ("__init__",),
    ("cli", "dask"),
    ("__main__",),
)
LAYER_OF = {package: number for number, packages in enumerate(LAYERS) for package in packages}
LAZY = {"__init__", "accessor", "fit", "data_sets"}  # may load heavy or optional packages when they are first used


@functools.cache
def nodes_of(file: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))


def place(file: Path, node: ast.AST) -> str:
    return f"{file.relative_to(PACKAGE)}:{node.lineno}"


def package_of(file: Path) -> str:
    return file.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(node: ast.AST) -> Iterator[str]:
    """Full names of the modules that an import statement names, with what is taken from them."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are written in full"
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports(file: Path) -> list[str]:
    return [name for node in nodes_of(file) for name in imported(node)]


def packages_used(file: Path) -> set[str]:
    """Top-level packages and modules that a file imports from; `__init__` for `import promesse_geo`."""
    used = set()
    for name in imports(file):
        package, *rest = name.split(".")
        if package == PACKAGE.name:
            top = rest[0] if rest else "__init__"
            is_package = (PACKAGE / top).is_dir() or (PACKAGE / f"{top}.py").is_file()
            used.add(top if is_package else "__init__")
    return used


def functions(file: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in nodes_of(file) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def test_every_package_has_its_layer():
    assert {package_of(file) for file in FILES} - set(LAYER_OF) == set()


def test_imports_only_go_down():
    used = {(package_of(file), other) for file in FILES for other in packages_used(file)}
    assert [(top, other) for top, other in used if top != other and LAYER_OF[other] >= LAYER_OF[top]] == []


def test_nothing_is_imported_inside_a_function():
    inner = ((file, node) for file in FILES for function in functions(file) for node in ast.walk(function))
    assert [place(file, node) for file, node in inner if list(imported(node))] == []


def test_only_init_and_accessor_import_late():
    late = set()
    for file in FILES:
        names = {node.id for node in nodes_of(file) if isinstance(node, ast.Name)}
        attributes = {node.attr for node in nodes_of(file) if isinstance(node, ast.Attribute)}
        late |= {file.stem} if {"import_module", "__import__"} & (names | attributes) else set()
    assert late - LAZY == set()


def test_kernels_import_only_numpy_math_and_other_kernels():
    used = {name for file in (PACKAGE / "kernels").glob("[!_]*.py") for name in imports(file)}
    assert {name for name in used if not name.startswith("promesse_geo.kernels.")} == {"numpy", "math"}


def test_no_function_takes_arbitrary_arguments():
    arguments = [(file, node.args) for file in FILES for node in functions(file)]
    starred = [(file, each) for file, args in arguments for each in (args.vararg, args.kwarg) if each]
    assert [place(file, each) for file, each in starred if not ast.unparse(each.annotation).startswith("Unpack[")] == []


def test_nothing_is_printed():
    names = [(file, node) for file in FILES for node in nodes_of(file) if isinstance(node, ast.Name)]
    assert [place(file, node) for file, node in names if node.id == "print"] == []


def test_every_module_is_named_after_its_subject():
    names = {part for file in FILES for part in file.relative_to(PACKAGE).with_suffix("").parts}
    assert names & {"utils", "core", "common", "config", "settings"} == set()


PUBLIC_NAMESPACES = ("promesse_geo", "promesse_geo.plot", "promesse_geo.paper")


@pytest.mark.parametrize("namespace", PUBLIC_NAMESPACES)
def test_no_module_has_the_name_of_a_public_function(namespace):
    module = importlib.import_module(namespace)
    modules = {info.name for info in pkgutil.iter_modules(module.__path__)}
    assert [name for name in module.__all__ if name in modules and not inspect.ismodule(getattr(module, name))] == []


def test_the_package_is_marked_as_typed():
    assert (PACKAGE / "py.typed").is_file()
