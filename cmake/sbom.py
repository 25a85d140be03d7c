"""Writes the wheel's software bill of materials: CycloneDX 1.6, from pyproject.toml and what builds the wheel.

    python cmake/sbom.py VERSION COMPILER OUTPUT

It names what the wheel needs at run time, with the versions allowed, and what made it. Libraries that are copied into
a wheel afterwards come in a list of their own by the tool that copies them. The same build gives the same bytes.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def _name(need: str) -> str:
    found = re.match(r"[\w.-]+", need)
    assert found, need
    return found[0]


def _runtime(need: str) -> dict[str, object]:
    name = _name(need)
    return {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}",
        "name": name,
        "purl": f"pkg:pypi/{name}",
        "scope": "required",
        "properties": [{"name": "manifast:requirement", "value": need}],
    }


def _tool(name: str) -> dict[str, object]:
    try:
        made = version(name)
    except PackageNotFoundError:  # built without pip's isolation, by tools that are no Python packages
        made = "unknown"
    return {"type": "application", "name": name, "version": made, "purl": f"pkg:pypi/{name}@{made}"}


def bill(project: dict[str, object], builders: list[str], package: str, compiler: str) -> dict[str, object]:
    """The bill of materials as CycloneDX has it."""
    needs = project["dependencies"]
    assert isinstance(needs, list)
    own = f"pkg:pypi/manifast@{package}"
    components = [_runtime(need) for need in needs]
    made = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": "manifast",
                "version": package,
                "purl": own,
                "licenses": [{"license": {"id": project["license"]}}],
            },
            "tools": {
                "components": [
                    *(_tool(_name(need)) for need in builders),
                    {"type": "application", "name": "compiler", "version": compiler},
                ]
            },
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [part["bom-ref"] for part in components]}],
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(made, sort_keys=True))
    return made | {"serialNumber": f"urn:uuid:{number}"}


if __name__ == "__main__":
    package, compiler, output = sys.argv[1:]
    about = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    made = bill(about["project"], about["build-system"]["requires"], package, compiler)
    Path(output).write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
