"""Where the documentation of an estimator is: notebooks link to it from the picture of the estimator."""

from __future__ import annotations

from typing import Any

DOCUMENTATION = "https://manifast.readthedocs.io/en/stable"


class Documented:
    """Mixin: scikit-learn's HTML representation links to the page of our own."""

    _doc_link_module = "manifast"
    _doc_link_template = DOCUMENTATION + "/api/{module}.{name}.html"

    def _doc_link_url_param_generator(self) -> dict[str, Any]:
        """Estimators are documented under the package that users import them from."""
        own = type(self).__module__.split(".")
        inner = own[1] if len(own) > 1 else ""
        at_top = inner in ("embeddings", "classifiers")
        return {"module": "manifast" if at_top else ".".join(own[:2]), "name": type(self).__name__}
