"""The version of a read model that a check is of."""

from include.errors import UnknownReadModelError
from include.quality.check import CheckRequest, QualityError
from include.versions.version_record import ENDED_STAGES, ReadModelVersions, Version


def checked_version(record: ReadModelVersions | None, request: CheckRequest) -> Version:
    """Return the version that a request names, or the live one.

    record: the version registry's, None if it has none of the read model. Raises QualityError when the version does not exist or has ended,
    UnknownReadModelError.
    """
    if record is None:
        raise UnknownReadModelError(
            f"The version registry has no {request.read_model!r}: start the stream driver on this Kafka first."
        )
    found = record.live if request.version is None else record.version(request.version)
    known = ", ".join(f"{version.number} ({version.stage})" for version in record.versions)
    if found is None:
        wanted = "live version" if request.version is None else f"version {request.version}"
        raise QualityError(f"{request.read_model} has no {wanted}; its versions: {known}.")
    if found.stage in ENDED_STAGES:
        raise QualityError(
            f"{request.read_model} v{found.number} is {found.stage}: its stores are removed. Its versions: {known}."
        )
    return found
