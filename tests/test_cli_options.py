"""Every option of every command that is given a wrong value is named by the error as it was typed."""

import click
import pandas as pd
import pytest
from click.testing import CliRunner
from test_cli import make_frame

import promesse_geo as pg
from promesse_geo.cli import main
from promesse_geo.cli.errors import with_options_named

WRONG = {
    click.FLOAT.name: ["", "nan", "inf", "-1", "1e23", "1e400", "much"],
    click.INT.name: ["", "-5", "1.5", "9" * 23, "nan", "many"],
    "seed": ["", " ", "nan", "NaN"],
    "choice": ["nonsense"],
    "out": ["table.txt"],
    "report": ["page.pdf"],
    "save_config": ["choices.toml", "choices"],
    "parameter": ["nonsense", "nonsense=1", "grid=-1", "epsilon=0"],
    "gap": ["soon", "-5min", "0"],
    "duration": ["soon", "-5min", "0"],
    "max_interval": ["soon", "-5min", "0"],
    "separator": ["", "nonsense", "||", "0", "e", ".", "-", '"'],
    "columns": ["", "a,b", "a,,b", "a,a"],
    "encoding": ["", "nonsense", "zlib"],
    "time_format": ["", "nonsense", "%", "%Q"],
    "memory": ["", "1", "-2GB", "nan", "much"],
    "crs": ["", "EPSG:nonsense", "EPSG:999999"],  # PROJ searches all names for other text, which takes long
    "period": ["", "nan", "nonsense", "2008-13-01"],
    "tz": ["Berlin", ""],
    "jobs": ["0", "many"],
}
"""Wrong values by the name of an option or of its type; "nonsense" for the rest."""

OF_DATA = {"source", "user", "time", "lon", "lat", "segment", "layer", "users", "scratch", "zones", "config", "dask"}
OF_DATA |= {"tiles", "background", "cabspotting", "geolife", "mdc", "workers", "time_unit"}
"""Options whose values are wrong only for some data, are other files, or have another rule before: for folders."""

ANY_TEXT = {"secret_file"}
FOLDERS = {("demo", "out"), ("reproduce", "out")}
BASE = {
    "smooth": {"epsilon": "200"},
    "demo": {"epsilon": "200"},
    "publish": {"epsilon": "200"},
    "geo-indistinguishability": {"epsilon": "0.01"},
    "report": {"mechanism": "geo-indistinguishability", "epsilon": "0.01"},
    "tune": {"from": "50", "to": "500", "at_most": "poi-retrieval 30"},
}
"""What a command needs besides its arguments, and where an option needs something else instead, or more."""

INSTEAD = {("geo-indistinguishability", "level"): {}, ("geo-indistinguishability", "radius"): {"level": "4"}}
INSTEAD |= {("publish", "parameter"): BASE["report"], ("report", "epsilon"): {"mechanism": "geo-indistinguishability"}}
MORE = {
    ("publish", "parameter"): {"mechanism": "geo-indistinguishability"},
    ("publish", "places"): {"zone_radius": "500"},
}
MORE |= {("publish", name): {"zone_radius": "500"} for name in ("zone_offset", "zones")}


def valued():
    """All options that take a value, as pairs of a command and an option."""
    for command in main.commands.values():
        for option in command.params:
            is_free = option.name in ANY_TEXT or (command.name, option.name) in FOLDERS
            if isinstance(option, click.Option) and not option.is_flag and not is_free:
                yield pytest.param(command, option, id=f"{command.name} {option.opts[0]}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("options")
    frame = make_frame()
    places = {"lon": frame.geometry.x, "lat": frame.geometry.y}
    pd.DataFrame({"user": frame["user"], "time": frame["time"], **places}).to_csv(folder / "raw.csv", index=False)
    pg.write(frame, folder / "safe.csv")
    return folder


def words_for(command, option, value, folder):
    """The command line with all that the command needs, and a wrong value of one option."""
    page = command.name in ("report", "map")
    paths = {"source": "raw.csv", "protected": "safe.csv", "output": "out.html" if page else "out.csv"}
    paths["paths"] = "out.html"
    words = [command.name]
    words += [str(folder / paths[each.name]) for each in command.params if isinstance(each, click.Argument)]
    key = (command.name, option.name)
    others = INSTEAD.get(key, BASE.get(command.name, {})) | MORE.get(key, {})
    for name, other in others.items():
        typed = f"--{name.replace('_', '-')}"
        words += [typed, *other.split()] if typed != option.opts[0] else []
    return (
        [*words, option.opts[0], value, "--force"]
        if command.name not in ("info", "check")
        else [*words, option.opts[0], value]
    )


@pytest.mark.parametrize(("command", "option"), list(valued()))
def test_an_error_names_the_option_as_it_was_typed(folder, monkeypatch, command, option):
    monkeypatch.chdir(folder)
    values = WRONG.get(option.name, WRONG.get(option.type.name, ["nonsense"]))
    for value in [*values, "nonsense"] if (command.name, option.name) == ("publish", "crs") else values:
        done = CliRunner().invoke(main, words_for(command, option, value, folder))
        said = done.output.split("Error: ")[-1]
        of_data = option.name in OF_DATA or (option.name, value) == ("columns", "a,b")
        assert done.exit_code in ((1, 2) if of_data else (2,)), (value, done.output)
        assert isinstance(done.exception, SystemExit), (value, done.exception)
        assert option.opts[0] in said, (value, said)
        assert "parameter of" not in said, (value, said)
        assert "' parameter" not in said, (value, said)


def test_names_of_parameters_are_replaced_in_sentences():
    with click.Context(main.commands["publish"]):
        named = with_options_named("The 'tz' parameter of publish must be a time zone. Got 'Berlin' instead.")
        assert named == "--tz must be a time zone. Got 'Berlin' instead."
        assert (
            with_options_named("The 'radius' parameter of PrivacyZones is 1.") == "--zone-radius of PrivacyZones is 1."
        )
        assert with_options_named("The 'path' parameter of write is 1.") == "OUTPUT is 1."
        assert with_options_named("The 'grid' parameter of X.y is 1.") == "--parameter grid of X is 1."
        assert with_options_named("Pass errors='skip' (--skip).") == "Pass --skip."
    with click.Context(main.commands["info"]):
        assert with_options_named("The 'epsilon' parameter of check is 1.") == "The 'epsilon' parameter of check is 1."
