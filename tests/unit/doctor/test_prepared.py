"""Servers of the user's own: one that does not reply is named with its setting, without its password."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from include.nodes.peer_tls import certificate_path
from include.settings import Settings
from stack.doctor import prepared
from stack.doctor.finding import Finding, State
from stack.doctor.prepared import (
    check_airflow,
    check_certificates,
    check_kafka,
    check_redis,
    check_schema_registry,
    check_servers,
    check_spark_master,
)
from tests.support.http.tls_server import NODE, expired, made
from tests.support.redis.redis_process import redis_process
from tests.support.temporary_stack import free_ports


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "TIMEOUT_S", 0.5)


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_only_servers_that_the_settings_name_are_checked() -> None:
    assert list(check_servers(Settings.of())) == []


@pytest.mark.parametrize(
    ("check", "variable", "url"),
    [
        (check_kafka, "kafka_bootstrap", "127.0.0.1:{port}"),
        (check_schema_registry, "schema_registry_url", "http://reader:hidden-word@127.0.0.1:{port}"),
        (check_airflow, "airflow_url", "http://127.0.0.1:{port}"),
        (check_redis, "redis_url", "redis://:hidden-word@127.0.0.1:{port}/0"),
    ],
)
def test_a_server_that_is_down_is_a_problem(
    check: Callable[[Settings], Finding], variable: str, url: str
) -> None:
    (port,) = free_ports(1)
    settings = Settings.of(**{variable: url.format(port=port)})

    (finding,) = check_servers(settings)

    assert finding == check(settings)
    assert finding.state is State.PROBLEM
    assert str(port) in finding.found
    assert f"FOLDLAKE_{variable.upper()}" in finding.action
    assert "hidden-word" not in str(finding)


def test_a_redis_that_replies_is_ok(tmp_path: Path) -> None:
    with redis_process(tmp_path) as server:
        finding = check_redis(Settings.of(redis_url=server.url))

    assert finding.state is State.OK


def test_one_of_several_spark_masters_is_enough(listening: int) -> None:
    (port,) = free_ports(1)

    found = check_spark_master("FOLDLAKE_STREAM_MASTER", f"spark://127.0.0.1:{port},127.0.0.1:{listening}")
    down = check_spark_master("FOLDLAKE_STREAM_MASTER", f"spark://127.0.0.1:{port}")

    assert found.state is State.OK
    assert down.state is State.PROBLEM
    assert "FOLDLAKE_STREAM_MASTER" in down.action


def test_a_certificate_that_has_ended_is_a_problem_only_where_it_is_used(tmp_path: Path) -> None:
    settings = Settings.of(home=made(tmp_path), auth="keys")
    (good,) = check_certificates(settings)
    expired(tmp_path, NODE)
    (ended,) = check_certificates(settings)

    assert (good.check, good.state) == ("certificates", State.OK)
    assert (ended.check, ended.state) == (f"certificate {NODE}", State.PROBLEM)
    assert "./foldlake certificates renew" in ended.action
    assert list(check_certificates(settings.changed(auth="none"))) == []


def test_a_file_that_is_no_certificate_is_a_problem(tmp_path: Path) -> None:
    certificate_path(made(tmp_path), NODE).write_text("no certificate")

    (finding,) = check_certificates(Settings.of(home=tmp_path, auth="keys"))

    assert finding.state is State.PROBLEM
    assert "cannot be read" in finding.found
