"""A limit on the requests of each caller: a rate, with bursts; and who counts as one client for other limits.

The method is the generic cell rate algorithm (ITU-T I.371). Headers as in draft-ietf-httpapi-ratelimit-headers-10: the quota of a
window, what remains of it, and when it is whole again.
"""

import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Self

from include.settings.auth import AuthSettings
from query_api.http.problems import ProblemError

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

# Where a request's caller is for the routes; no header of a client has this name.
CALLER_KEY = "foldlake.caller"
POLICY_HEADER = "RateLimit-Policy"
LIMIT_HEADER = "RateLimit"
POLICY = "caller"
# Callers whose quota is whole again are forgotten at this number.
REMEMBERED_CALLERS = 10_000


class Quota(NamedTuple):
    """What a caller has left after a request. wait_s: until the next request is accepted; 0 if this one is."""

    remaining: int
    reset_s: float
    wait_s: float


class RateLimit:
    """The quotas of all callers, in one HTTP worker process. Thread-safe.

    A caller without requests has `burst` of them; afterwards, one becomes free every 1 / `rate` seconds.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Allow `rate` requests a second, above 0, and `burst` at once, at least 1."""
        self._interval_s = 1 / rate
        self._window_s = burst / rate
        self._clock = clock
        self._policy = (POLICY_HEADER, f'"{POLICY}";q={burst};w={max(1, math.ceil(self._window_s))}')
        self._lock = threading.Lock()
        # The time at which the quota of each caller is whole again.
        self._whole_at: dict[str, float] = {}

    @classmethod
    def of(cls, auth: AuthSettings) -> Self | None:
        """Return the limit of the settings; None for no limit."""
        return cls(auth.caller_rate, auth.burst) if auth.caller_rate else None

    def take(self, caller: str) -> Quota:
        """Take a request from the quota of this caller, if one is left."""
        with self._lock:
            now = self._clock()
            used_s = max(0.0, self._whole_at.get(caller, 0.0) - now)
            wait_s = used_s + self._interval_s - self._window_s
            # A rounding error must not cost a request.
            is_accepted = wait_s <= self._interval_s * 1e-6
            if is_accepted:
                used_s += self._interval_s
                self._whole_at[caller] = now + used_s
                if len(self._whole_at) > REMEMBERED_CALLERS:
                    self._forget(now)
        remaining = int((self._window_s - used_s) / self._interval_s + 1e-6)
        return Quota(remaining, used_s, 0.0 if is_accepted else wait_s)

    def headers(self, quota: Quota) -> list[tuple[str, str]]:
        """Return the headers that tell a caller its quota."""
        left = f'"{POLICY}";r={quota.remaining};t={math.ceil(quota.reset_s)}'
        return [self._policy, (LIMIT_HEADER, left)]

    def _forget(self, now: float) -> None:
        self._whole_at = {caller: whole_at for caller, whole_at in self._whole_at.items() if whole_at > now}


def rate_exceeded(caller: str, quota: Quota) -> ProblemError:
    """Return the problem of a request beyond the quota."""
    return ProblemError(
        429,
        "rate-limited",
        f"{caller} has used its quota of requests: send the next one in {quota.wait_s:.3g} s.",
        retry_after_s=max(1, math.ceil(quota.wait_s)),
    )


def client_of(environ: "WSGIEnvironment") -> str:
    """Return who uses a slot: the name of the request's caller, or the client's address on a node without authentication."""
    caller = environ.get(CALLER_KEY)
    return environ.get("REMOTE_ADDR") or "" if caller is None else caller.name
