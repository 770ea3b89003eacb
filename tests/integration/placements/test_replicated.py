"""Every node answers for a replicated read model alone. query_nodes/test_partitioned.py has the same checks of a partitioned one."""

from collections.abc import Callable, Iterator
from decimal import Decimal

import pytest

from include.settings import Placement, Settings
from tests.integration.placements.two_nodes import TwoNodes, check_replicas, check_same_answers, two_nodes


@pytest.fixture(scope="module")
def placed(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[TwoNodes]:
    """Two nodes."""
    with two_nodes(servers, keep_home, Placement.REPLICATED) as nodes:
        yield nodes


def test_every_node_gives_the_same_answers(placed: TwoNodes) -> None:
    check_same_answers(placed)


def test_quality_check_reads_every_copy_once(placed: TwoNodes) -> None:
    placed.wait_until_exact()
    check_replicas(placed)


def test_replicas_answer_on_when_an_owner_is_killed(placed: TwoNodes) -> None:
    lost = placed.owned_by_other()
    assert lost, "the other node owns keys"
    placed.other.kill()

    answers = {key: placed.nodes.balance(placed.first_port, key).status_code for key in lost}

    assert set(answers.values()) == {200}
    assert placed.is_listed(placed.first_port)
    placed.put(lost[0], placed.nodes.expected[lost[0]] + Decimal("1.00"))
    placed.start_other()
    placed.wait_until_exact()
