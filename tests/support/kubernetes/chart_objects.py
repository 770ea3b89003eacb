"""The objects that the chart makes of a set of values, and what the processes of their containers get."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from include.settings import PREFIX, Settings
from include.settings.variables import FILE
from tests.support.kubernetes.helm import rendered

# The fields of a pod that its containers refer to.
POD = {"POD_NAME": "shop-foldlake-node-1", "POD_IP": "10.1.2.3"}
# Names a folder of a volume, which is not on this machine.
MOUNTED = f"{PREFIX}READ_MODELS_DIR"


@cache
def objects(name: str) -> list[dict[str, Any]]:
    """Return all objects of a set of values."""
    return rendered(name)


def of_kind(name: str, kind: str) -> dict[str, dict[str, Any]]:
    """Return the objects of a kind by their names."""
    return {one["metadata"]["name"]: one for one in objects(name) if one["kind"] == kind}


def pods(name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the metadata and the specification of each pod."""
    for one in objects(name):
        if one["kind"] == "Pod":
            yield one["metadata"], one["spec"]
        elif one["kind"] == "StatefulSet":
            yield one["spec"]["template"]["metadata"], one["spec"]["template"]["spec"]


def pod(name: str, part: str) -> dict[str, Any]:
    """Return the specification of the pods of a component."""
    (found,) = (
        spec for labels, spec in pods(name) if labels["labels"]["app.kubernetes.io/component"] == part
    )
    return found


def all_containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a pod's containers, those that run first included."""
    return [*spec.get("initContainers", []), *spec["containers"]]


def variables(name: str, container: dict[str, Any]) -> dict[str, str]:
    """Return a container's environment, with the fields of its pod inserted as the kubelet does."""
    found: dict[str, str] = {}
    for source in container.get("envFrom", []):
        found |= of_kind(name, "ConfigMap")[source["configMapRef"]["name"]]["data"]
    for one in container.get("env", []):
        text = one.get("value", POD.get(one["name"], ""))
        found[one["name"]] = re.sub(r"\$\((\w+)\)", lambda matched: found[matched[1]], text)
    return found


def settings_of(name: str, container: dict[str, Any]) -> Settings:
    """Return the settings of a container's processes; raises as `Settings`. What is in a volume is left out."""
    values = {
        variable.removeprefix(PREFIX).lower(): value
        for variable, value in variables(name, container).items()
        if variable.startswith(PREFIX) and not variable.endswith(FILE) and variable != MOUNTED
    }
    return Settings.of(**values)
