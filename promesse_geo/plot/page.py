"""Self-contained HTML pages in light and dark colours, and on paper."""

import html
import re
from collections.abc import Iterable, Sequence

ENDINGS = (".html", ".htm")
"""Endings of the names of pages."""

_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --line: #ccc; --faint: #595959; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #16181c; --line: #444; --faint: #a8a8a8; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 72rem; padding: 0 1rem; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
tbody th { text-align: left; font-weight: normal; }
thead th { border-bottom: 2px solid var(--line); }
.faint { color: var(--faint); font-size: .9rem; }
figure { margin: 1rem 0; background: #fff; border-radius: 4px; padding: .5rem; display: inline-block; max-width: 100%; }
figure svg { max-width: 100%; height: auto; }
@page { margin: 16mm 14mm; }
@media print {
  :root { color-scheme: light; --ink: #000; --paper: #fff; --line: #bbb; --faint: #444; }
  body { font-size: 10.5pt; margin: 0; max-width: none; padding: 0; }
  section, tr, li, dl, figure { break-inside: avoid; }
  h1, h2, h3, .lead { break-after: avoid; } h2 { margin-top: 1.6rem; }
  thead { display: table-header-group; } th, td { padding: .2rem .5rem; } .wide { overflow: visible; }
  thead th, tbody th { white-space: normal; }
}
"""
_WITH_UNIT = re.compile(r"(?<=\d) (?=(?:%|m|km|s|min|h|m/s)(?![\w/]))|(?<=[=±<]) (?=\d)|(?<=\w) (?=[=±] \d)")


def page(title: str, body: str, *, style: str = "") -> str:
    """Return an HTML page with a title, a body that is HTML already, and more rules of CSS."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}{style}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def escaped(text: str) -> str:
    """Return text as HTML in which no line ends between a number and its unit."""
    return html.escape(_WITH_UNIT.sub("\N{NO-BREAK SPACE}", text))


def paragraphs(texts: Iterable[str]) -> str:
    """Return texts as paragraphs of HTML."""
    return "\n".join(f"<p>{escaped(text)}</p>" for text in texts)


def number_table(rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of values, aligned to the right, and what each of them is."""
    return _table("".join(f"<tr><td>{escaped(value)}</td>{_left(text)}</tr>" for value, text in rows))


def text_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts with a head."""
    body = "".join(f"<tr>{''.join(map(_left, row))}</tr>" for row in rows)
    return _table(body, head=f"<thead><tr>{''.join(_left(name, cell='th') for name in head)}</tr></thead>")


def _table(body: str, *, head: str = "") -> str:
    return f'<div class="wide"><table>{head}<tbody>{body}</tbody></table></div>'


def _left(text: str, *, cell: str = "td") -> str:
    """Return a cell of text; notebooks align all cells to the right unless a cell says otherwise."""
    return f'<{cell} style="text-align: left; white-space: normal">{escaped(text)}</{cell}>'
