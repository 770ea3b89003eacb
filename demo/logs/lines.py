"""Log lines of a web shop that does not exist: people and bots, always the same ones for the same number of lines.

As in a real log, lines are late (their time is before that of lines above them), doubled, of other loggers, and now and then broken.
"""

import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice

SEED = 20_260_302
START = datetime(2026, 3, 2, 8, tzinfo=UTC)
LINES_PER_S = 40.0
THREADS = 8
PRODUCTS = 80
PEOPLE, BOTS = 600, 24
ACTIONS = ("home", "search", "product", "cart", "checkout")
BOT_ACTIONS = ("search", "product", "price")
# Shares of the lines.
VIEWS, BROWSING, CAPTCHAS, OTHER_LOGGERS = 0.40, 0.53, 0.05, 0.015
# The bots' share of the actions, and while they are busy: for the last minutes of each period.
BOT_SHARE, BUSY_BOT_SHARE = 0.1, 0.6
PERIOD_MIN, BUSY_AFTER_MIN = 10, 6
SOLVED_BY_PEOPLE, SOLVED_BY_BOTS = 0.9, 0.005
DOUBLED, LATE, VERY_LATE = 0.004, 0.03, 0.002
LATE_S, VERY_LATE_S = 3.0, (20.0, 120.0)


@dataclass(frozen=True)
class LogLine:
    """A line as an appender writes it to Kafka.

    thread: that logged it; the record's key. text: the record's value. written_ms: when it is written, in milliseconds since 1970; the
    record's time. A late line is written later than it says.
    """

    thread: str
    text: str
    written_ms: int


def product_id(number: int) -> str:
    """Return the id of a product, numbered from 1 in the order of popularity."""
    return f"product-{number}"


def browser_hash(number: int) -> str:
    """Return the hash of a browser, numbered from 1: first those of people, then those of bots."""
    return hashlib.sha256(f"browser-{number}".encode()).hexdigest()[:16]


def bots() -> list[str]:
    """Return the hashes of the bots."""
    return [browser_hash(PEOPLE + number) for number in range(1, BOTS + 1)]


def log_lines(count: int) -> Iterator[LogLine]:
    """Yield this number of lines. Fewer lines are the beginning of more."""
    yield from islice(_Shop().lines(), count)


class _Shop:
    """Makes up lines, one after the other."""

    def __init__(self) -> None:
        self._random = random.Random(SEED)  # noqa: S311 - made-up data
        self._now = START
        self._weights = [number**-1.2 for number in range(1, PRODUCTS + 1)]
        self._products = [product_id(number) for number in range(1, PRODUCTS + 1)]

    def lines(self) -> Iterator[LogLine]:
        """Yield lines for ever."""
        while True:
            self._now += timedelta(seconds=self._random.expovariate(LINES_PER_S))
            line = self._line()
            yield line
            if self._random.random() < DOUBLED:
                yield line

    def _line(self) -> LogLine:
        thread = f"http-{self._random.randrange(THREADS) + 1}"
        kind = self._random.random()
        if kind < VIEWS:
            (product,) = self._random.choices(self._products, self._weights)
            return self._logged(thread, "product-views", "product viewed", product_id=product)
        if kind < VIEWS + BROWSING:
            return self._browsing(thread)
        if kind < VIEWS + BROWSING + CAPTCHAS:
            return self._captcha(thread)
        if kind < VIEWS + BROWSING + CAPTCHAS + OTHER_LOGGERS:
            return self._logged(thread, "payments", "payment accepted", cents=self._random.randrange(10_000))
        return self._broken(thread)

    def _browsing(self, thread: str) -> LogLine:
        minute = (self._now - START) // timedelta(minutes=1)
        is_busy = minute % PERIOD_MIN >= BUSY_AFTER_MIN
        is_bot = self._random.random() < (BUSY_BOT_SHARE if is_busy else BOT_SHARE)
        action = self._random.choice(BOT_ACTIONS if is_bot else ACTIONS)
        browser = self._browser(is_bot=is_bot)
        return self._logged(thread, "browser-actions", f"GET /{action}", browser_hash=browser, action=action)

    def _captcha(self, thread: str) -> LogLine:
        is_bot = self._random.random() < 1 / 2
        solved = self._random.random() < (SOLVED_BY_BOTS if is_bot else SOLVED_BY_PEOPLE)
        browser = self._browser(is_bot=is_bot)
        return self._logged(thread, "captcha-results", "captcha", browser_hash=browser, solved=solved)

    def _browser(self, *, is_bot: bool) -> str:
        return browser_hash(
            PEOPLE + self._random.randrange(BOTS) + 1 if is_bot else self._random.randrange(PEOPLE) + 1
        )

    def _broken(self, thread: str) -> LogLine:
        """Return a line that cannot be read: cut off, or with a field that is missing or of another type."""
        match self._random.randrange(3):
            case 0:
                whole = self._logged(thread, "product-views", "product viewed", product_id=product_id(1))
                return replace(whole, text=whole.text[: len(whole.text) // 2])
            case 1:
                return self._logged(thread, "product-views", "product viewed")
            case _:
                return self._logged(
                    thread, "captcha-results", "captcha", browser_hash=browser_hash(1), solved="yes"
                )

    def _logged(self, thread: str, logger: str, message: str, **fields: object) -> LogLine:
        record = {
            "@timestamp": f"{self._time():%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z",
            "@version": "1",
            "level": "INFO",
            "logger_name": logger,
            "thread_name": thread,
            "message": message,
        }
        return LogLine(thread, json.dumps(record | fields), round(self._now.timestamp() * 1000))

    def _time(self) -> datetime:
        lateness = self._random.random()
        if lateness < VERY_LATE:
            return self._now - timedelta(seconds=self._random.uniform(*VERY_LATE_S))
        if lateness < VERY_LATE + LATE:
            return self._now - timedelta(seconds=self._random.uniform(0, LATE_S))
        return self._now
