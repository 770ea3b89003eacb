"""Servers and lake as metrics: what cannot be read has no value."""

from typing import Any

from query_api.metrics.status_metrics import status_exposition

SERVICES = [{"service": "Kafka", "is_up": True}, {"service": "Schema registry", "is_up": False}]
TABLE = {"table": "balance", "exists": True, "bytes": 4_096, "age_s": 12.5, "events_behind": 7}


def lines_of(services: dict[str, Any], lake: dict[str, Any]) -> list[str]:
    text = status_exposition({"services": services, "lake": lake}).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


def section(data: object, error: str | None = None) -> dict[str, Any]:
    return {"as_of": None, "age_s": 1.0, "error": error, "data": data}


def test_servers_and_tables_have_their_metrics() -> None:
    assert lines_of(section(SERVICES), section([TABLE])) == [
        'foldlake_status_error{section="services"} 0.0',
        'foldlake_status_error{section="lake"} 0.0',
        'foldlake_service_up{service="Kafka"} 1.0',
        'foldlake_service_up{service="Schema registry"} 0.0',
        'foldlake_lake_table_age_seconds{table="balance"} 12.5',
        'foldlake_lake_events_behind{table="balance"} 7.0',
        'foldlake_lake_table_bytes{table="balance"} 4096.0',
    ]


def test_a_table_that_does_not_exist_and_an_unknown_lag_have_no_value() -> None:
    missing = {"table": "parcels", "exists": False}
    unknown = TABLE | {"age_s": None, "events_behind": None}

    assert lines_of(section([]), section([missing, unknown]))[2:] == [
        'foldlake_lake_table_bytes{table="balance"} 4096.0'
    ]


def test_what_was_read_before_an_error_is_no_value() -> None:
    assert lines_of(section(SERVICES, "no answer"), section(None)) == [
        'foldlake_status_error{section="services"} 1.0',
        'foldlake_status_error{section="lake"} 0.0',
    ]
