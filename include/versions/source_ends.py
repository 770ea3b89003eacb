"""The live version of a read model, and the ends of what a version folds: for what is only shown, without errors."""

from collections.abc import Mapping

from include.declarations.read_model import ReadModel
from include.errors import KafkaUnavailableError
from include.kafka.topic_state import ends_if_known
from include.position import Offsets
from include.versions.registry import VersionRegistry
from include.versions.version_record import Version


def source_ends_if_known(
    bootstrap_servers: str, model: ReadModel, number: int | None, read: Mapping[int, int] | None = None
) -> Offsets | None:
    """Return the end offsets of the source topic of a version; None if Kafka does not respond: for what is only shown.

    read: end offsets above these are lowered to where the records end, so that only what has records looks unread. number: None, and a version that the registry does not list, stand for the topic that the read model declares.
    """
    try:
        with VersionRegistry(bootstrap_servers) as registry:
            record = registry.read().get(model.name)
    except KafkaUnavailableError:
        return None
    version = None if record is None or number is None else record.version(number)
    source_topic = "" if version is None else version.source_topic
    return ends_if_known(bootstrap_servers, model.reading(source_topic).source_topic, read)


def live_version_if_known(bootstrap_servers: str, read_model: str) -> Version | None:
    """Return the live version of a read model; None if there is none, or if Kafka does not respond."""
    try:
        with VersionRegistry(bootstrap_servers) as registry:
            record = registry.read().get(read_model)
    except KafkaUnavailableError:
        return None
    return None if record is None else record.live
