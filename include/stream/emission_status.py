"""The progress of emissions, measured on their topics and from the driver's reports."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from include.declarations.catalog import Catalog
from include.kafka.log_reading import end_offsets
from include.kafka.origins import WrittenRecords
from include.kafka.topics import partition_count
from include.position import Offsets
from include.stream.checkpoints import emission_query_name
from include.stream.query_reports import QueryStatus
from include.stream.route_status import newest_outputs
from include.stream.standstill import read_offsets
from include.versions.version_record import ReadModelVersions, Stage


@dataclass(frozen=True)
class EmissionStatus:
    """The progress of one emission for one version of its read model.

    events_behind: source events that it has not read, as far as can be seen: an event without an output counts until the next commit.
    records: number of records on the output topic.
    """

    emission: str
    read_model: str
    version: int
    output_topic: str
    events_behind: int
    records: int


def emission_statuses(
    catalog: Catalog,
    versions: Mapping[str, ReadModelVersions],
    admin: AdminClient,
    consumer: Consumer,
    reports: Mapping[str, QueryStatus],
) -> Iterator[EmissionStatus]:
    """Yield the progress of each emission of each active version whose topics exist; raises KafkaUnavailableError."""
    for emission in catalog.emissions.values():
        record = versions.get(emission.read_model)
        source = catalog.models[emission.read_model].source_topic
        source_partitions = partition_count(admin, source)
        for version in () if record is None else record.active:
            is_live = version.stage is Stage.LIVE
            topic = emission.output_topic if is_live else emission.version_topic(version.number)
            partitions = partition_count(admin, topic)
            if source_partitions is None or partitions is None:
                continue
            name = emission_query_name(emission.name, version.number)
            read = read_offsets(admin, consumer, source, reports.get(f"{name}/live" if is_live else name))
            records = WrittenRecords(emission.name, source)
            read = read.merge(newest_outputs(consumer, topic, partitions, records))
            ends = Offsets.of_ends(end_offsets(consumer, source, source_partitions))
            yield EmissionStatus(
                emission.name,
                emission.read_model,
                version.number,
                topic,
                read.events_until(ends),
                sum(end_offsets(consumer, topic, partitions)),
            )
