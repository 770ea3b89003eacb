"""Helm, for the tests of its chart."""

import pytest

from tests.support.kubernetes.helm import HelmMissingError, helm


@pytest.fixture(scope="session", autouse=True)
def _has_helm() -> None:
    try:
        helm()
    except HelmMissingError as error:
        pytest.skip(str(error))
