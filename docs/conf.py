"""Sphinx: `pip install -e ".[docs]" && sphinx-build -W docs build/docs`."""

from importlib.metadata import version as version_of

project = "Orbitune"
author = "The Orbitune developers"
release = version = version_of("orbitune")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "Orbitune"

autodoc_member_order = "bysource"
autodoc_typehints = "description"  # jaxtyping's signatures are too long for a line
autodoc_class_signature = "separated"
napoleon_google_docstring = True
napoleon_use_ivar = True  # "Attributes:" of dataclasses, which autodoc lists too
