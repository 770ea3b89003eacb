"""A version of a read model that a rebuild has registered, without the rebuild."""

from include.declarations.read_model import ReadModel
from include.rebuild.registration import register_versions
from include.rebuild.request import RebuildRequest
from include.settings import Settings
from include.versions.registry import VersionRegistry


def registered_version(settings: Settings, model: ReadModel, request: RebuildRequest, run_id: str) -> int:
    """Register the version of a request for one read model; return its number."""
    with VersionRegistry(settings.kafka_connection) as registry:
        versions = register_versions(registry, settings.stream, {model.name: model}, request, {}, run_id)
    return versions[model.name].number
