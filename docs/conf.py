"""Sphinx configuration; `make docs` builds with warnings as errors."""

import solid_bandits

project = "solid-bandits"
author = "the solid-bandits authors"
copyright = "2026, the solid-bandits authors"
version = release = solid_bandits.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_tables"]
html_theme = "furo"
html_title = "solid-bandits"
html_static_path = ["_static"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
nitpicky = False
