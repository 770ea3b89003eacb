"""A record's delivery: acknowledged, or its outcome is unknown."""

import pytest
from confluent_kafka import KafkaError, Message

from query_api.errors import OutcomeUnknownError
from query_api.http.commands.event_producer import AppendedAt, Delivery


def test_an_acknowledged_record_has_a_position() -> None:
    delivery = Delivery()

    delivery.report(None, Message(topic="balance", partition=3, offset=7))

    assert delivery.wait(0) == AppendedAt("balance", 3, 7)


@pytest.mark.parametrize("error", [KafkaError._MSG_TIMED_OUT, KafkaError._PURGE_QUEUE, KafkaError._TRANSPORT])
def test_after_any_error_the_record_may_have_been_written(error: int) -> None:
    delivery = Delivery()

    delivery.report(KafkaError(error), Message(topic="balance", partition=3, offset=-1001))

    with pytest.raises(OutcomeUnknownError, match="may have been written"):
        delivery.wait(0)


def test_without_a_report_the_record_may_have_been_written() -> None:
    with pytest.raises(OutcomeUnknownError, match="no answer in time"):
        Delivery().wait(0)
