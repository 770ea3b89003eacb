"""The events of all systems, each appended at a steady rate by a thread of its own."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from benchmarks.pos.till_load import TillLoad
from benchmarks.support.steady_load import SteadyLoad
from demo.appending import ensure_source_topic, event_producer
from demo.logs.lines import log_lines
from demo.logs.loading import TOPIC as LOGS
from demo.orders.couriers import MS_PER_S, Shift, in_real_time, load
from include.settings import Settings

FLUSH_S = 60.0
TICK_S = 0.05
# The couriers have driven for this long when the load begins, longer than most orders live, so that all orders of the rate are active.
EARLIER = timedelta(minutes=45)


@dataclass(frozen=True)
class Rates:
    """Deposits, invoices and log lines a second, and active orders, each of which moves every 15 seconds."""

    deposits: int
    invoices: int
    lines: int
    orders: int


class Loads:
    """Appends for a given time. lines: how many log lines were appended. updates: of orders, likewise."""

    def __init__(self, settings: Settings, rates: Rates, seconds: float) -> None:
        self._settings = settings
        self._rates = rates
        self._seconds = seconds
        self.deposits = SteadyLoad(settings)
        self.tills = TillLoad(settings, round(rates.invoices * seconds))
        self.lines = 0
        self.updates = 0
        self._errors: list[BaseException] = []

    def run(self) -> None:
        """Append to all systems at once; raise the first error of any of them."""
        parts = (self._append_deposits, self._append_invoices, self._append_lines, self._append_orders)
        threads = [threading.Thread(target=self._guarded, args=(part,), name=part.__name__) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _guarded(self, append: Callable[[], None]) -> None:
        try:
            append()
        except BaseException as error:  # noqa: BLE001 - raised again by `run`, in its thread
            self._errors.append(error)

    def _append_deposits(self) -> None:
        self.deposits.run(self._rates.deposits, self._seconds)

    def _append_invoices(self) -> None:
        self.tills.run(self._rates.invoices, self._seconds)
        self.tills.run_rest()

    def _append_lines(self) -> None:
        ensure_source_topic(self._settings, LOGS)
        producer = event_producer(self._settings.kafka_connection)
        lines = log_lines(round(self._rates.lines * self._seconds))
        began_s = time.monotonic()
        for line in lines:
            while time.monotonic() - began_s < self.lines / self._rates.lines:
                producer.poll(0)
                time.sleep(TICK_S)
            producer.produce(LOGS, line.text.encode(), line.thread.encode(), timestamp=line.written_ms)
            self.lines += 1
        assert producer.flush(FLUSH_S) == 0

    def _append_orders(self) -> None:
        began = datetime.now(UTC) - EARLIER
        shift = Shift.lasting(began, EARLIER + timedelta(seconds=self._seconds), self._rates.orders)
        until_ms = round((time.time() + self._seconds) * MS_PER_S)
        # Those of the past are appended at once.
        self.updates = load(self._settings, in_real_time(shift.updates(), until_ms))
