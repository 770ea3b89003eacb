"""What Helm makes of the chart: valid objects that belong together, and pods that can do little."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.kubernetes.chart_objects import all_containers, objects, of_kind, pod, pods
from tests.support.kubernetes.helm import CHART, SCHEMAS, run_helm, schema_errors, value_sets, values_files

SETS = value_sets()
WRITER = "shop-foldlake-writer"


@pytest.mark.parametrize("name", SETS)
def test_helm_finds_nothing_wrong(name: str) -> None:
    assert "0 chart(s) failed" in run_helm(
        "lint", "--strict", CHART, *(f"--values={path}" for path in values_files(name))
    )


@pytest.mark.parametrize("name", SETS)
def test_every_object_is_valid(name: str) -> None:
    found = {
        f"{one['kind']} {one['metadata']['name']}": errors
        for one in objects(name)
        if (errors := schema_errors(one))
    }

    assert found == {}


@pytest.mark.skipif(not shutil.which("kubeconform"), reason="kubeconform is not on the PATH")
@pytest.mark.parametrize("name", SETS)
def test_kubeconform_finds_nothing_wrong(name: str, tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text(yaml.safe_dump_all(objects(name)))

    done = subprocess.run(
        ["kubeconform", "-strict", "-summary", "-output", "json", "-schema-location", SCHEMAS, manifest],
        capture_output=True,
        text=True,
        check=False,
    )

    summary = json.loads(done.stdout)["summary"]
    assert summary == {"valid": len(objects(name)), "invalid": 0, "errors": 0, "skipped": 0}, done.stdout


def test_a_setting_may_have_its_old_name_and_the_notes_name_the_new_one() -> None:
    values = (
        *(f"--values={path}" for path in values_files("default")),
        "--set=settings.FOLDLAKE_LAKE_EVENTS=off",
    )

    installed = run_helm("install", "shop", CHART, "--dry-run=client", *values)

    assert 'FOLDLAKE_LAKE_EVENTS: "off"' in installed
    assert "FOLDLAKE_LAKE_EVENTS has a new name: rename it to FOLDLAKE_LAKE_EVENT_TABLES." in installed


def test_a_misspelled_field_is_found() -> None:
    (service, *_) = of_kind("default", "Service").values()

    assert schema_errors({**service, "spec": {**service["spec"], "selectors": {}}})


@pytest.mark.parametrize("name", SETS)
def test_every_pod_can_do_little_and_has_limits(name: str) -> None:
    for _, spec in pods(name):
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["securityContext"]["runAsUser"] == 50000
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["automountServiceAccountToken"] is False
        # Or a Service named foldlake-node sets FOLDLAKE_NODE_PORT.
        assert spec["enableServiceLinks"] is False
        for container in all_containers(spec):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
            }
            assert "memory" in container["resources"]["limits"], container["name"]


@pytest.mark.parametrize("name", SETS)
def test_every_mount_has_a_volume(name: str) -> None:
    for one in of_kind(name, "StatefulSet").values():
        spec = one["spec"]["template"]["spec"]
        claims = {claim["metadata"]["name"] for claim in one["spec"].get("volumeClaimTemplates", [])}
        mounted = {mount["name"] for container in all_containers(spec) for mount in container["volumeMounts"]}

        assert mounted == claims | {volume["name"] for volume in spec["volumes"]}


@pytest.mark.parametrize("name", SETS)
def test_every_selector_finds_a_pod(name: str) -> None:
    labels = [metadata["labels"] for metadata, _ in pods(name)]
    wanted = [one["spec"]["selector"] for one in of_kind(name, "Service").values()]
    wanted += [
        one["spec"]["selector"]["matchLabels"] for one in of_kind(name, "PodDisruptionBudget").values()
    ]
    wanted += [one["spec"]["podSelector"]["matchLabels"] for one in of_kind(name, "NetworkPolicy").values()]

    assert [one for one in wanted if not any(one.items() <= found.items() for found in labels)] == []


def test_what_shares_locks_is_one_pod() -> None:
    writer = of_kind("default", "StatefulSet")[WRITER]["spec"]

    assert writer["replicas"] == 1
    # Processes look for each other by their ids.
    assert writer["template"]["spec"]["shareProcessNamespace"] is True
    homes = [
        [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "home"]
        for container in writer["template"]["spec"]["containers"]
    ]
    assert homes == [["/var/lib/foldlake"]] * 5


def test_the_shared_volume_is_written_by_the_writer_only() -> None:
    mounts = {
        (part, mount["mountPath"], mount["readOnly"])
        for part in ("node", "writer")
        for container in pod("read-models", part)["containers"]
        for mount in container["volumeMounts"]
        if mount["name"] == "shared"
    }

    folders = [f"/var/lib/foldlake/{folder}" for folder in ("lake", "reports", "verified")]
    assert mounts == {(part, folder, part == "node") for part in ("node", "writer") for folder in folders}
