"""Build the documentation: `sphinx-build -W -n docs docs/_build`."""

import re
import shutil
from pathlib import Path

import promesse_geo as pg

project = "Promesse Geo"
author = "The Promesse Geo developers"
copyright = author
version = release = pg.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon", "sphinx_click"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
nb_execution_mode = "off"  # notebooks are shown as they ran
nb_merge_streams = True
templates_path = ["templates"]
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_title = f"Promesse Geo {version}"
html_copy_source = False
html_show_sphinx = False
pygments_dark_style = "monokai"
smartquotes = False

add_module_names = False
toc_object_entries_show_parents = "hide"
default_role = "code"
autodoc_typehints = "none"  # docstrings state types and units
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_param = False  # keep parameters that share a line together
napoleon_use_rtype = False
nitpick_ignore_regex = [("py:(class|exc)", r"(?!promesse_geo\.).*")]  # types of Python and of other libraries

shutil.copytree(Path(__file__).parent.parent / "notebooks", Path(__file__).parent / "notebooks", dirs_exist_ok=True)

_NAMES = [name for name in pg.__all__ if name not in ("paper", "plot")]  # not the modules
_NAME = rf"(?:promesse_geo\.)?((?:{'|'.join(_NAMES)})(?:\.[a-z]\w*)?)"
_CLASSES = "|".join(name for name in pg.__all__ if name[0].isupper())
_LINK = r":py:obj:`\1 <promesse_geo.\1>`"
_IN_BACKTICKS = re.compile(rf"(?<![`:])`{_NAME}`(?!`)")
_IN_MARKDOWN = re.compile(rf"(?<![`:}}])`((?:{_CLASSES})|pg\.(?:{'|'.join(_NAMES)}))`(?!`)")
_TYPE = re.compile(r"(?:\*{0,2}\w[\w, ]* : .*|[\w.]+(?: or [\w.]+)*)")
_IN_TYPE = re.compile(rf"(?<![\w.`])({_CLASSES})(?![\w`])")


def link_names(app, what, name, obj, options, lines):
    """Link public names in backticks and in the types of parameters and results."""
    for number, line in enumerate(lines):
        typed = _TYPE.fullmatch(line)
        lines[number] = (_IN_TYPE if typed else _IN_BACKTICKS).sub(_LINK, line)


def _as_reference(name):
    return f"{{py:obj}}`{name[1]} <promesse_geo.{name[1].removeprefix('pg.')}>`"


def link_names_of_page(app, docname, source):
    """Link public names in backticks on pages in Markdown, outside of code and headings, and copies of notebooks."""
    if Path(app.env.doc2path(docname)).suffix == ".md":
        text = re.sub(r"\]\(\.\./((?:\.\./)*notebooks/)", r"](\1", source[0])
        pieces = re.split(r"(^```.*?^```|^#.*?$|\[[^]]*\]\()", text, flags=re.DOTALL | re.MULTILINE)
        pieces[::2] = [_IN_MARKDOWN.sub(_as_reference, text) for text in pieces[::2]]
        source[0] = "".join(pieces)


def write_dots(app, what, name, obj, options, signature, returned):
    """Show `...` in signatures."""
    return signature and signature.replace("=Ellipsis", "=..."), returned


def setup(app):
    """Connect the hooks, before napoleon converts the sections."""
    app.connect("autodoc-process-docstring", link_names, priority=400)
    app.connect("source-read", link_names_of_page)
    app.connect("autodoc-process-signature", write_dots)
