"""A version of a topic that no route writes any more is never complete."""

import pytest

from include.declarations.load import load_catalog
from include.rebuild.routed_events import NoRouteError, RoutedTopic
from include.settings import Settings


def test_a_topic_without_a_route_is_refused_with_the_remedy() -> None:
    with pytest.raises(
        NoRouteError, match=r"No route writes postings\.v7.*put the declaration of the route back"
    ):
        RoutedTopic(Settings.of().kafka_connection, load_catalog(), "postings.v7")
