"""Configuration of the site. ``python -m docs`` builds it."""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

project = "manifast"
author = "The manifast developers"
copyright = author
version = release = installed_version("manifast")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "typeset",
    "pictures",
    "tables",
]
exclude_patterns = ["_build", "_tables", "gallery", "examples", "papers/results", "**/README.md"]
suppress_warnings = ["config.cache"]  # functions in the configuration cannot be pickled
templates_path = ["_templates"]
default_role = "literal"
nitpicky = False

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_title = "manifast"
html_static_path = ["_static"]
html_css_files = ["manifast.css"]
html_favicon = "_static/favicon.svg"
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "start": [], "choose": [], "one_problem": [], "performance": [], "glossary": []}
html_theme_options: dict[str, Any] = {
    "logo": {"text": "manifast"},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "show_toc_level": 2,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}

autosummary_generate = True
autodoc_typehints = "none"
autodoc_default_options = {"member-order": "bysource"}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["auto_gallery"],
    "backreferences_dir": "_backreferences",
    "doc_module": ("manifast",),
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": ("_repr_html_",),
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,  # of a machine that does other things too
    "abort_on_example_error": False,
    "plot_gallery": "True",
    "image_srcset": ["2x"],
}


def own_methods(fullname: str) -> list[str]:
    """The public methods of a class that this project wrote itself."""
    module, _, name = fullname.rpartition(".")
    kind = getattr(import_module(module), name)
    found = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("manifast"):
            found.update({name: value for name, value in vars(base).items() if not name.startswith("_")})
    methods = [name for name, value in found.items() if inspect.isroutine(value) or isinstance(value, classmethod)]
    return [name for name in methods if (getattr(kind, name).__doc__ or "").strip()]


def picture(fullname: str) -> str:
    """The picture of an estimator, where there is one."""
    path = HERE / "_pictures" / f"{fullname.rpartition('.')[2]}.png"
    return f"/_pictures/{path.name}" if fullname.count(".") == 1 and path.exists() else ""


autosummary_context = {"own_methods": own_methods, "picture": picture}
