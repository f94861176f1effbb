"""Type checkers see the types of the public names."""

import inspect
import os
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import promesse_geo as pg

PACKAGE = Path(pg.__file__).parent
README = PACKAGE.parent / "README.md"
FLAGS = ("as_traces", "return_pois", "return_streets")
OVERLOADED = [
    value
    for value in (getattr(pg, name) for name in pg.__all__)
    if inspect.isfunction(value) and set(FLAGS) & set(inspect.signature(value).parameters)
]
# Types of other packages are theirs to check, and reading them takes most of the time.
CONFIGURATION = """
[mypy]
ignore_missing_imports = true
[mypy-PIL.*,branca.*,click.*,cryptography.*,folium.*,jinja2.*,matplotlib.*,numpy.*,pandas.*,requests.*,sklearn.*]
follow_imports = skip
follow_imports_for_stubs = true
"""
# Without types of geopandas, a checker takes a GeoDataFrame for Any, which has any accessor.
FRAME, TRACES = "Any", "promesse_geo.traces.traces.Traces"
REVEALED = {
    "pg.Promesse(200)": "promesse_geo.mechanisms.promesse.Promesse",
    'pg.read_file("x")': FRAME,
    'pg.read_file("x", format="gpx", users=["a"], as_traces=False)': FRAME,
    'pg.read_file("x", as_traces=True)': TRACES,
    'pg.read_file("x", as_traces=bool(input()))': f"{FRAME} | {TRACES}",
    'pg.read_table(["x", "y"], user="cab", as_traces=True)': TRACES,
    'pg.read_gpx("x", user="track", as_traces=True)': TRACES,
    'pg.read_geolife("x", users=["000"], as_traces=True)': TRACES,
    'pg.read_cabspotting("x", errors="skip", as_traces=True)': TRACES,
    'pg.read_mdc(["x"], as_traces=True)': TRACES,
    "pg.make_city(5)": FRAME,
    "pg.make_city(5, as_traces=True)": TRACES,
    "pg.make_city(5, return_pois=True)": f"tuple[{FRAME}, {FRAME}]",
    "pg.make_city(5, return_streets=True)": f"tuple[{FRAME}, {FRAME}]",
    "pg.make_city(5, return_pois=True, return_streets=True)": f"tuple[{FRAME}, {FRAME}, {FRAME}]",
    "pg.make_city(5, return_pois=True, as_traces=True)": f"tuple[{TRACES}, {FRAME}]",
    "pg.make_city(5, return_streets=True, as_traces=True)": f"tuple[{TRACES}, {FRAME}]",
    "pg.make_city(return_pois=True, return_streets=True, as_traces=True)": f"tuple[{TRACES}, {FRAME}, {FRAME}]",
    'pg.Promesse(200).protect(pg.read_file("x"))': FRAME,
    'pg.Promesse(200).protect(pg.read_file("x", as_traces=True))': TRACES,
    'pg.prepare(pg.make_city(), tz="Europe/Paris")': FRAME,
}
PUBLIC = ("pg.draw_map", "pg.PoiExtractor", "pg.plot.trade_off", "pg.paper.example_data")
ERRORS = {
    'pg.Promesse("far")',
    'pg.recommended("peple")',
    'pg.read_file("x", as_trace=True)',
    'pg.read_gpx("x", tz="UTC")',
    'pg.read_file("x", as_traces=True).promesse',
}


def check(source: str, folder: Path) -> str:
    file = folder / "script.py"
    file.write_text(source, encoding="utf-8")
    (folder / "mypy.ini").write_text(CONFIGURATION, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "mypy", f"--cache-dir={os.devnull}", "--config-file=mypy.ini", str(file)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},  # found as an installed package, which needs py.typed
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout


def test_mypy_finds_wrong_types_in_a_users_script(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    example = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[0].splitlines()
    asked = [*REVEALED, *PUBLIC]
    lines = [*example, *(f"reveal_type({each})" for each in asked), *sorted(ERRORS)]
    output = check("\n".join(lines), tmp_path)
    notes = dict(re.findall(r'script\.py:(\d+): note: Revealed type is "(.*)"', output))
    types = dict(zip(asked, [notes[str(len(example) + 1 + number)] for number in range(len(asked))], strict=True))
    assert {each: types[each] for each in REVEALED} == REVEALED
    assert [each for each in PUBLIC if types[each] == "Any"] == []
    errors = {lines[int(number) - 1] for number in re.findall(r"script\.py:(\d+): error: ", output)}
    assert errors == ERRORS  # none of them in README's example


@pytest.mark.parametrize("function", OVERLOADED, ids=lambda function: function.__name__)
def test_overloads_have_the_parameters_of_their_function(function):
    """Each overload takes all parameters but flags, some of which it may leave at their default."""
    parameters = inspect.signature(function).parameters
    expected = {name: each.annotation for name, each in parameters.items() if name not in FLAGS}
    overloads = typing.get_overloads(function)
    assert overloads
    for each in overloads:
        names = {name: parameter.annotation for name, parameter in inspect.signature(each).parameters.items()}
        options = names.pop("options", None)
        taken = names | ({} if options is None else typing.get_type_hints(typing.get_args(options)[0]))
        assert {name: kind for name, kind in taken.items() if name not in FLAGS} == expected
    assert set(FLAGS) & set(parameters) <= set(taken)  # the last one is for flags that are variables
