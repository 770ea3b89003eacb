"""A failed check is posted to the webhook, if one is set; a failed delivery is logged."""

import time
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from include.quality.report import alert
from include.webhook import post_alert
from tests.support.http.webhook import Webhook, running_webhook
from tests.unit.quality.test_report import FAILED


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with running_webhook() as server:
        yield server


def test_webhook_receives_the_failed_expectations(webhook: Webhook) -> None:
    assert alert(SecretStr(webhook.url), FAILED)

    (body,) = webhook.received
    assert (body["read_model"], body["version"]) == ("balance", 3)
    assert body["text"].startswith("quality check FAILED: balance v3")
    assert body["expectations"] == [
        {"store": "lake", "expectation": "amount equals the replayed value", "failed": 1}
    ]
    assert {"place": "lake", "key": "gone"} in body["keys"]


def test_rejected_alert_is_logged(webhook: Webhook, caplog: pytest.LogCaptureFixture) -> None:
    webhook.status = 500

    assert not alert(SecretStr(webhook.url), FAILED)

    assert "quality check FAILED" in caplog.text
    assert "could not be delivered" in caplog.text


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 410, 500])
def test_webhook_that_refuses_an_alert_gets_it_once_and_its_url_is_not_logged(
    webhook: Webhook, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    webhook.status = status

    assert not post_alert(SecretStr(webhook.url), {"text": "a"})

    assert len(webhook.received) == 1
    assert f"it replies {status}" in caplog.text
    assert "/hook" not in caplog.text


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_busy_webhook_gets_the_alert_once_more(
    webhook: Webhook, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    webhook.status = status
    waits: list[float] = []

    def recover(wait_s: float) -> None:
        waits.append(wait_s)
        webhook.status = 200

    monkeypatch.setattr(time, "sleep", recover)

    assert post_alert(SecretStr(webhook.url), {"text": "a"})
    assert len(webhook.received) == 2
    assert waits == [1.0]


def test_unreachable_webhook_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert not alert(SecretStr("http://127.0.0.1:1/hook"), FAILED)

    assert "quality check FAILED" in caplog.text


def test_without_a_webhook_the_failure_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert alert(SecretStr(""), FAILED)

    assert "quality check FAILED" in caplog.text
