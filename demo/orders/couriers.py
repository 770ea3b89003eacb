"""A seeded simulation of couriers on a street grid: the updates of their orders, some late, doubled or out of order."""

import heapq
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from random import Random
from typing import Any, NamedTuple

from demo.appending import append_missing, ensure_source_topic, load_lock
from include.kafka.record_schema import RecordSchema, schema_file
from include.settings import Settings
from include.settings.systems import system_folder

SYSTEM = system_folder("orders")
SCHEMA = schema_file(SYSTEM / "schemas" / "OrderLocation.avsc")
MS_PER_S = 1000
S_PER_MINUTE = 60
MS_PER_MINUTE = S_PER_MINUTE * MS_PER_S
# The south-western corner of the city in degrees, and the size of its blocks: about 170 m each way.
SOUTH, WEST = 52.46, 13.30
BLOCK_LATITUDE, BLOCK_LONGITUDE = 0.0015, 0.0025
BLOCKS = 60
# A delivery goes this many blocks in each direction at most.
FURTHEST_BLOCKS = 14
COURIERS_PER_ACTIVE_ORDER = 1.2
# What share of an order's life it waits in the kitchen, before a courier picks it up.
PREPARATION = 0.3
CANCELLED = 0.05
# Seconds from an update to its record, on average; and the shares of updates that take minutes, that take hours (only moves: an order
# whose end never comes would stay), and that are sent twice.
DELAY_S = 0.5
LATE, LATE_MINUTES = 0.02, 20.0
LOST, LOST_MINUTES = 0.001, (250.0, 330.0)
DOUBLED = 0.02
# An order's life differs by this factor from the average.
SHORTEST, LONGEST = 0.5, 1.5


class Update(NamedTuple):
    """One update of an order, which is an event of type OrderLocation. Times are milliseconds since 1970.

    written_ms: when its record reaches Kafka. number: of the order in its shift. sequence: of the update in its order.
    """

    written_ms: int
    number: int
    sequence: int
    order: str
    placed_ms: int
    occurred_ms: int
    courier: str
    latitude: float
    longitude: float
    status: str

    @property
    def schema(self) -> RecordSchema:
        """The schema of the event's type."""
        return SCHEMA

    def fields(self) -> Mapping[str, Any]:
        """Return the value of every field of the schema."""
        return {
            "id": f"{self.order}/{self.sequence}",
            "occurredOn": self.occurred_ms,
            "orderNumber": self.order,
            "placedOn": self.placed_ms,
            "courier": self.courier,
            "latitude": self.latitude,
            "longitude": self.longitude,
            "status": self.status,
        }


@dataclass(frozen=True)
class Shift:
    """What is simulated.

    began: when the first order is placed, UTC. Order numbers contain it, so shifts that begin in different seconds share none.
    orders: how many are placed. active: how many are active at a time, on average. minutes: an order's life, on average.
    update_every_s: seconds between the updates of an order on its way.
    """

    began: datetime
    orders: int
    active: int = 500
    minutes: float = 30.0
    update_every_s: float = 15.0
    seed: int = 1

    @classmethod
    def lasting(cls, began: datetime, duration: timedelta, active: int) -> "Shift":
        """Return a shift in which orders are placed for this long."""
        return cls(began, math.ceil(duration / timedelta(minutes=cls.minutes) * active), active)

    @cached_property
    def began_ms(self) -> int:
        """When the first order is placed."""
        return round(self.began.timestamp()) * MS_PER_S

    @property
    def interval_ms(self) -> float:
        """The time from one order to the next."""
        return self.minutes * MS_PER_MINUTE / self.active

    def updates(self) -> Iterator[Update]:
        """Yield the updates of all orders in the order of their records. The same shift always yields the same."""
        waiting: list[Update] = []
        for number in range(self.orders):
            placed_ms = self.began_ms + round(number * self.interval_ms)
            while waiting and waiting[0].written_ms < placed_ms:
                yield heapq.heappop(waiting)
            for update in self._sent(number, placed_ms):
                heapq.heappush(waiting, update)
        while waiting:
            yield heapq.heappop(waiting)

    def _sent(self, number: int, placed_ms: int) -> Iterator[Update]:
        """Yield the updates of an order with the times at which they are written."""
        random = Random(self.seed << 32 | number)  # noqa: S311 - a simulation
        for update in self._driven(random, number, placed_ms):
            yield update._replace(written_ms=update.occurred_ms + _delay_ms(random, update))
            if random.random() < DOUBLED:
                yield update._replace(written_ms=update.occurred_ms + _delay_ms(random, update))

    def _driven(self, random: Random, number: int, placed_ms: int) -> Iterator[Update]:
        """Yield the updates of an order as they happen."""
        life_ms = random.uniform(SHORTEST, LONGEST) * self.minutes * MS_PER_MINUTE
        route = _Route.across(random)
        courier = f"courier {random.randrange(math.ceil(self.active * COURIERS_PER_ACTIVE_ORDER))}"
        ends_at = random.uniform(0.1, 0.9) if random.random() < CANCELLED else 1.0
        number_of_moves = max(int(life_ms * (1 - PREPARATION) / (self.update_every_s * MS_PER_S)), 1)
        steps = [(0.0, "PLACED"), (PREPARATION, "PICKED_UP")]
        steps += [
            (PREPARATION + (1 - PREPARATION) * move / (number_of_moves + 1), "ON_THE_WAY")
            for move in range(1, number_of_moves + 1)
        ]
        steps = [(at, status) for at, status in steps if at < ends_at]
        steps.append((ends_at, "DELIVERED" if ends_at == 1.0 else "CANCELLED"))
        order = f"{self.began_ms // MS_PER_S}-{number:06d}"
        for sequence, (at, status) in enumerate(steps):
            latitude, longitude = route.place(max(0.0, at - PREPARATION) / (1 - PREPARATION))
            yield Update(
                0,
                number,
                sequence,
                order,
                placed_ms,
                placed_ms + round(at * life_ms),
                courier if status != "PLACED" else "",
                latitude,
                longitude,
                status,
            )


def _delay_ms(random: Random, update: Update) -> int:
    chance = random.random()
    if chance < LOST and update.status == "ON_THE_WAY":
        return round(random.uniform(*LOST_MINUTES) * MS_PER_MINUTE)
    if chance < LOST + LATE:
        return round(random.uniform(0, LATE_MINUTES) * MS_PER_MINUTE)
    return round(random.expovariate(1 / DELAY_S) * MS_PER_S)


class _Route(NamedTuple):
    """The way of an order in blocks: from a kitchen along a street, then along an avenue to the customer."""

    street: float
    avenue: float
    along: int
    up: int

    @classmethod
    def across(cls, random: Random) -> "_Route":
        """Return a random route that stays within the city."""
        street, avenue = random.randrange(BLOCKS), random.randrange(BLOCKS)
        ends = [
            min(max(at + random.randint(-FURTHEST_BLOCKS, FURTHEST_BLOCKS), 0), BLOCKS)
            for at in (avenue, street)
        ]
        return cls(street, avenue, ends[0] - avenue, ends[1] - street)

    def place(self, share: float) -> tuple[float, float]:
        """Return latitude and longitude after a share of the way, from 0 to 1, rounded to a metre."""
        done = share * (abs(self.along) + abs(self.up))
        along = min(done, abs(self.along))
        up = done - along
        avenue = self.avenue + math.copysign(along, self.along)
        street = self.street + math.copysign(up, self.up)
        return round(SOUTH + street * BLOCK_LATITUDE, 5), round(WEST + avenue * BLOCK_LONGITUDE, 5)


TOPIC = "order-location"


def load(
    settings: Settings, updates: Iterable[Update], on_acknowledged: Callable[[int], None] = lambda _: None
) -> int:
    """Append updates, each with the record time at which it was written, wait until all are acknowledged, and return their number.

    Raises:
        LoadRunningError: another load is running.
        KafkaUnavailableError: the broker did not acknowledge an update.
    """
    with load_lock(settings.home):
        ensure_source_topic(settings, TOPIC)
        return append_missing(settings, TOPIC, updates, 0, on_acknowledged, lambda update: update.written_ms)


def in_real_time(updates: Iterable[Update], until_ms: int) -> Iterator[Update]:
    """Yield each update no earlier than it is written, until this time in milliseconds since 1970."""
    for update in updates:
        if update.written_ms >= until_ms:
            return
        time.sleep(max(0.0, update.written_ms / MS_PER_S - time.time()))
        yield update
