"""How Sphinx builds the site: `make site`."""

from __future__ import annotations

import re
from pathlib import Path

_VERSION = Path(__file__).parents[1] / "nessie_cli" / "__init__.py"

project = "nessie"
author = "the authors of nessie-cli"
release = re.findall(r'__version__ = "(.+)"', _VERSION.read_text(encoding="utf-8"))[0]
extensions = ["myst_parser"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist", "smartquotes"]
smartquotes = False
exclude_patterns = ["reference/json/*.json"]
nitpicky = True
# Some examples show shortened JSON, which no lexer accepts.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = "nessie: Git for a data lake's catalog"
html_static_path = ["_static"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_css_files = ["site.css"]
