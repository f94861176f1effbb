"""Self-contained HTML pages in light and dark colours."""

import html
from collections.abc import Iterable, Mapping

_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --line: #ccc; --faint: #595959; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #16181c; --line: #444; --faint: #a8a8a8; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 72rem; padding: 0 1rem; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
.wide { overflow-x: auto; }
pre { font: 14px/1.5 ui-monospace, monospace; white-space: pre-wrap; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
tbody th { text-align: left; font-weight: normal; }
thead th { border-bottom: 2px solid var(--line); }
.faint { color: var(--faint); font-size: .9rem; }
figure { margin: 1rem 0; background: #fff; border-radius: 4px; padding: .5rem; display: inline-block; max-width: 100%; }
figure svg { max-width: 100%; height: auto; }
"""


def page(title: str, body: str, *, style: str = "") -> str:
    """Return an HTML page with a title, a body that is HTML already, and more rules of CSS."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}{style}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def preformatted(texts: Mapping[str, str]) -> str:
    """Return texts under their headings as HTML, with their spaces and line breaks."""
    return "\n".join(
        f'<h2>{html.escape(title)}</h2><div class="wide"><pre>{html.escape(text)}</pre></div>'
        for title, text in texts.items()
    )


def paragraphs(texts: Iterable[str]) -> str:
    """Return texts as paragraphs of HTML."""
    return "\n".join(f"<p>{html.escape(text)}</p>" for text in texts)
