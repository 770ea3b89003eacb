"""Alerts to FOLDLAKE_ALERT_WEBHOOK_URL, as JSON."""

import logging
from collections.abc import Mapping

import httpx

LOG = logging.getLogger(__name__)
# At INFO, httpx logs the URL of every request, and a webhook's URL is a secret.
logging.getLogger("httpx").setLevel(logging.WARNING)
TIMEOUT_S = 10.0


def post_alert(webhook_url: str, body: Mapping[str, object]) -> bool:
    """POST an alert, whose `text` is one line, as chat systems display it; do nothing if the URL is empty.

    Returns False, and logs the reason, if the webhook did not accept it. Never raises.
    """
    if not webhook_url:
        return True
    try:
        httpx.post(webhook_url, json=body, timeout=TIMEOUT_S, follow_redirects=True).raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        # What the alert is about is also in the log.
        LOG.error("the alert could not be delivered to FOLDLAKE_ALERT_WEBHOOK_URL: %s", error)  # noqa: TRY400
        return False
    return True
