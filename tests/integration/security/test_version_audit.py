"""A change of the live version is in the audit log, with who did it and why."""

import json
from dataclasses import replace

import pytest

from include.access.audit import FILE
from include.rebuild.promotion import roll_back_version
from include.versions.registry import VersionRegistry
from include.versions.version_record import Stage, first_version
from tests.integration.security.conftest import SecuredNodes

READ_MODEL = "audited"


def test_a_rollback_is_in_the_audit_log(secured: SecuredNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CTX_DAG_RUN_ID", "manual__1")
    first = first_version(READ_MODEL, 1)
    live = first.versions[0]
    later = replace(live, number=2, changelog_topic=f"{READ_MODEL}.v2.changelog")
    with VersionRegistry(secured.settings.kafka_connection) as registry:
        record = replace(first, versions=(replace(live, stage=Stage.PREVIOUS), later))
        registry.compare_and_set(record, 0)

    roll_back_version(secured.settings, READ_MODEL, 1, reason="wrong\nnumbers")

    lines = (secured.settings.home / FILE).read_text(encoding="utf-8").splitlines()
    entry = next(entry for entry in map(json.loads, lines) if entry.get("read_model") == READ_MODEL)
    assert (entry["action"], entry["version"], entry["position"]) == ("rolled-back", 1, 2)
    assert entry["reason"] == "wrong\nnumbers"
    assert entry["who"].startswith("user:")
    assert entry["who"].endswith(" run:manual__1")
