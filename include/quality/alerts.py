"""The alert on a failed check: always in the log, and to a webhook if one is set."""

import logging

from include.quality.check import CheckResult
from include.webhook import post_alert

LOG = logging.getLogger(__name__)
KEYS_IN_ALERT = 20


def alert(webhook_url: str, result: CheckResult) -> bool:
    """Alert on a failed check; return False if the webhook did not accept it. Never raises.

    The webhook gets a POST of JSON: text (one line, as chat systems display it), read_model, version, run_id, report,
    expectations (those that failed: store, expectation, failed) and keys (some of those that failed: place, key).
    """
    LOG.error("%s", result.verdict)
    body = {
        "text": f"{result.verdict}. Report: {result.report_url}",
        "read_model": result.request.read_model,
        "version": result.version,
        "run_id": result.request.run_id,
        "report": result.report_url,
        "expectations": [
            {"store": e.store, "expectation": e.expectation, "failed": e.failed}
            for e in result.expectations
            if not e.passed
        ],
        "keys": [{"place": k.place, "key": k.key} for k in result.failing_keys[:KEYS_IN_ALERT]],
    }
    return post_alert(webhook_url, body)
