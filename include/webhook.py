"""Alerts to FOLDLAKE_ALERT_WEBHOOK_URL, as JSON."""

import logging
import time
from collections.abc import Mapping

import httpx
from pydantic import SecretStr

from include.http_replies import BUSY, retry_after_s

LOG = logging.getLogger(__name__)
# At INFO, httpx logs the URL of every request, and a webhook's URL is a secret.
logging.getLogger("httpx").setLevel(logging.WARNING)
TIMEOUT_S = 10.0
# A webhook that is busy gets the alert once more, after its `Retry-After` within these bounds.
SHORTEST_WAIT_S, LONGEST_WAIT_S = 1.0, 10.0


def post_alert(webhook_url: SecretStr, body: Mapping[str, object]) -> bool:
    """POST an alert, whose `text` is one line, as chat systems display it; do nothing if the URL is empty.

    A busy webhook, or one that does not respond in time, gets it once more. Returns False, and logs the reason without the URL, if the
    webhook did not accept it. Never raises.
    """
    if not webhook_url:
        return True
    problem, wait_s = _post(webhook_url, body)
    if wait_s is not None:
        time.sleep(wait_s)
        problem, _ = _post(webhook_url, body)
    if problem:
        # What the alert is about is also in the log.
        LOG.error("the alert could not be delivered to FOLDLAKE_ALERT_WEBHOOK_URL: %s", problem)
    return not problem


def _post(webhook_url: SecretStr, body: Mapping[str, object]) -> tuple[str, float | None]:
    """Return why the webhook did not accept an alert, if so, and after how many seconds another attempt may succeed, if it may."""
    try:
        reply = httpx.post(
            webhook_url.get_secret_value(), json=body, timeout=TIMEOUT_S, follow_redirects=True
        )
    except httpx.TimeoutException as error:
        return type(error).__name__, SHORTEST_WAIT_S
    except httpx.TransportError as error:
        return str(error) or type(error).__name__, None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return type(error).__name__, None
    if reply.is_success:
        return "", None
    problem = f"it replies {reply.status_code} {reply.reason_phrase}"
    if reply.status_code not in BUSY:
        return f"{problem}: check the URL", None
    return problem, min(
        max(retry_after_s(reply.headers.get("Retry-After")) or 0.0, SHORTEST_WAIT_S), LONGEST_WAIT_S
    )
