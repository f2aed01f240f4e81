"""Sphinx configuration; `make docs` builds with warnings as errors, and without a network."""

import sys
from pathlib import Path

import solid_bandits

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "solid-bandits"
author = "The solid-bandits developers"
copyright = "2026, the solid-bandits developers"
version = release = solid_bandits.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml", "policy_lists"]
exclude_patterns = ["_build", "_tables", "_extensions"]

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

# Tutorials are executed when they or the code around them changed, and kept in docs/_build/executed.
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parent / "_build" / "executed")
nb_execution_timeout = 1800  # of a cell, in seconds; the first one may compile, on a busy machine
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_output_stderr = "remove"  # that policies are being compiled

html_theme = "furo"
html_title = "solid-bandits"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
nitpicky = False
