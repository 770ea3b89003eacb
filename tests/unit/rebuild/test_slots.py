"""A rebuild starts only if the stream driver has task slots for another version."""

import pytest

from include.rebuild.errors import NoSlotsError
from include.rebuild.registration import check_slots
from include.settings import StreamSettings
from include.versions.version_record import first_version

RECORDS = [first_version(name, 1) for name in ("balance", "orders", "removed")]


def test_spare_slot_is_enough() -> None:
    check_slots(StreamSettings(spare_queries=1), RECORDS[:2], ["balance", "orders"])


def test_without_a_spare_slot_it_is_refused_with_the_remedy() -> None:
    with pytest.raises(
        NoSlotsError, match=r"for 2 queries, and 2 versions use them.*FOLDLAKE_STREAM_SPARE_QUERIES"
    ):
        check_slots(StreamSettings(spare_queries=0), RECORDS[:2], ["balance", "orders"])


def test_versions_of_a_read_model_without_a_module_take_no_slots() -> None:
    check_slots(StreamSettings(spare_queries=1), RECORDS, ["balance", "orders"])
