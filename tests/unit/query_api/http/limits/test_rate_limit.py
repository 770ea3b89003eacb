"""The quota of each caller: bursts, the rate afterwards, and headers."""

from query_api.http.limits.rate_limit import REMEMBERED_CALLERS, RateLimit, rate_exceeded


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        """Return the time in seconds."""
        return self.now


def test_a_burst_is_accepted_and_the_next_request_is_not() -> None:
    limit = RateLimit(rate=10, burst=5, clock=Clock())

    quotas = [limit.take("key:till") for _ in range(6)]

    assert [quota.remaining for quota in quotas] == [4, 3, 2, 1, 0, 0]
    assert [quota.wait_s == 0 for quota in quotas] == [True] * 5 + [False]
    assert abs(quotas[5].wait_s - 0.1) < 1e-6


def test_afterwards_requests_are_accepted_at_the_rate() -> None:
    clock = Clock()
    limit = RateLimit(rate=10, burst=5, clock=clock)
    for _ in range(5):
        limit.take("key:till")

    accepted = 0
    for _ in range(100):
        clock.now += 0.05
        accepted += limit.take("key:till").wait_s == 0

    # 5 s at 10 requests a second.
    assert accepted == 50


def test_a_refused_request_costs_nothing() -> None:
    clock = Clock()
    limit = RateLimit(rate=1, burst=1, clock=clock)
    limit.take("key:till")
    for _ in range(100):
        assert limit.take("key:till").wait_s > 0

    clock.now += 1

    assert limit.take("key:till").wait_s == 0


def test_callers_have_quotas_of_their_own() -> None:
    limit = RateLimit(rate=1, burst=1, clock=Clock())
    limit.take("key:till")

    assert limit.take("key:till").wait_s > 0
    assert limit.take("key:report").wait_s == 0


def test_a_quota_is_whole_again_after_the_window() -> None:
    clock = Clock()
    limit = RateLimit(rate=2, burst=10, clock=clock)
    for _ in range(10):
        limit.take("key:till")

    clock.now += 5

    assert limit.take("key:till").remaining == 9


def test_headers_name_the_policy_and_what_remains() -> None:
    limit = RateLimit(rate=2, burst=10, clock=Clock())

    assert limit.headers(limit.take("key:till")) == [
        ("RateLimit-Policy", '"caller";q=10;w=5'),
        ("RateLimit", '"caller";r=9;t=1'),
    ]


def test_the_problem_says_when_to_send_the_next_request() -> None:
    limit = RateLimit(rate=0.1, burst=1, clock=Clock())
    limit.take("key:till")

    problem = rate_exceeded("key:till", limit.take("key:till"))

    assert (problem.status, problem.slug, problem.retry_after_s) == (429, "rate-limited", 10)


def test_callers_with_a_whole_quota_are_forgotten() -> None:
    clock = Clock()
    limit = RateLimit(rate=1_000, burst=1, clock=clock)
    for number in range(REMEMBERED_CALLERS):
        limit.take(f"jwt:{number}")
    limit.take("key:till")
    clock.now += 0.0005

    assert limit.take("key:till").wait_s > 0, "its quota is remembered"
    clock.now += 1
    limit.take("jwt:new")

    assert len(limit._whole_at) <= REMEMBERED_CALLERS + 1
