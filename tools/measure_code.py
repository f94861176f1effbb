"""Measure the size of the code: `python tools/measure_code.py [ROOT]` prints one Markdown table.

Code lines exclude blank lines, comments and docstrings.
"""

import ast
import io
import statistics
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def docstring_lines(tree: ast.Module) -> set[int]:
    """Return the numbers of the lines that hold docstrings and other bare strings."""
    strings = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    return {line for node in strings for line in range(node.lineno, node.end_lineno + 1)}


def code_lines(file: Path) -> set[int]:
    """Return the numbers of the lines of code of a file."""
    source = file.read_text(encoding="utf-8")
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {line for token in tokens if token.type not in LAYOUT for line in range(token.start[0], token.end[0] + 1)}
    return lines - docstring_lines(ast.parse(source))


def function_lengths(file: Path, lines: set[int]) -> list[int]:
    """Return the code lines of each function of a file, with its signature."""
    functions = [
        node
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return [len(lines.intersection(range(node.lineno, node.end_lineno + 1))) for node in functions]


def imported(file: Path, package: str) -> Iterator[str]:
    """Yield the top-level parts of the package that a file imports."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            first, *rest = name.split(".")
            if first == package and rest:
                yield rest[0]


def imports_between(folder: Path) -> set[tuple[str, str]]:
    """Return the pairs of top-level parts of the package of which the first imports the second."""
    parts = {path.stem for path in folder.iterdir() if path.is_dir() or path.suffix == ".py"}
    pairs = set()
    for file in folder.rglob("*.py"):
        importer = file.relative_to(folder).with_suffix("").parts[0]
        pairs |= {(importer, part) for part in imported(file, folder.name) if part in parts and part != importer}
    return pairs


def table(root: Path) -> str:
    """Return the measures of a project as a Markdown table."""
    package = root / "promesse_geo"
    lines = {file: code_lines(file) for file in sorted(package.rglob("*.py"))}
    sizes = sorted(len(numbers) for numbers in lines.values())
    lengths = sorted(length for file, numbers in lines.items() for length in function_lengths(file, numbers))
    tests = sum(len(code_lines(file)) for file in (root / "tests").rglob("*.py"))
    largest = max(lines, key=lambda file: len(lines[file])).relative_to(package)
    parts = {file.relative_to(package).with_suffix("").parts[0] for file in lines}
    rows = {
        "modules": f"{len(sizes):,}",
        "code lines": f"{sum(sizes):,}",
        "median module": f"{statistics.median(sizes):.0f}",
        "largest module": f"{sizes[-1]} ({largest})",
        "functions": f"{len(lengths):,}",
        "function lines: median": f"{statistics.median(lengths):.0f}",
        "function lines: 95th percentile": f"{statistics.quantiles(lengths, n=20)[-1]:.0f}",
        "function lines: largest": f"{lengths[-1]}",
        "functions over 40 lines": f"{sum(length > 40 for length in lengths)}",
        "functions over 60 lines": f"{sum(length > 60 for length in lengths)}",
        "top-level packages and modules": f"{len(parts)}",
        "imports between them": f"{len(imports_between(package))}",
        "test code lines": f"{tests:,}",
        "test code per code line": f"{tests / sum(sizes):.2f}",
    }
    return "\n".join(
        ["| measure | value |", "| --- | ---: |", *(f"| {name} | {value} |" for name, value in rows.items())]
    )


if __name__ == "__main__":
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    sys.stdout.write(table(root) + "\n")
