"""A failed check is posted to the webhook, if one is set; a failed delivery is logged."""

from collections.abc import Iterator

import pytest

from include.quality.alerts import alert
from tests.support.http.webhook import Webhook, running_webhook
from tests.unit.quality.test_report import FAILED


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with running_webhook() as server:
        yield server


def test_webhook_receives_the_failed_expectations(webhook: Webhook) -> None:
    assert alert(webhook.url, FAILED)

    (body,) = webhook.received
    assert (body["read_model"], body["version"]) == ("balance", 3)
    assert body["text"].startswith("quality check FAILED: balance v3")
    assert body["expectations"] == [
        {"store": "lake", "expectation": "amount is what the events fold to", "failed": 1}
    ]
    assert {"place": "lake", "key": "gone"} in body["keys"]


def test_rejected_alert_is_logged(webhook: Webhook, caplog: pytest.LogCaptureFixture) -> None:
    webhook.status = 500

    assert not alert(webhook.url, FAILED)

    assert "quality check FAILED" in caplog.text
    assert "could not be delivered" in caplog.text


def test_unreachable_webhook_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert not alert("http://127.0.0.1:1/hook", FAILED)

    assert "quality check FAILED" in caplog.text


def test_without_a_webhook_the_failure_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert alert("", FAILED)

    assert "quality check FAILED" in caplog.text
