"""The base class of Foldlake's errors, and the errors that several packages raise."""


class FoldlakeError(Exception):
    """An expected failure; the message states what failed, why, and the next step."""


class SettingsError(FoldlakeError):
    """A setting has an invalid value."""


class ReadModelError(FoldlakeError):
    """A read-model module declares something that cannot be folded."""


class SchemaError(FoldlakeError):
    """An Avro schema is missing, unreadable or unsuitable."""


class RegistryUnavailableError(FoldlakeError):
    """The schema registry does not respond, or does not serve the caller: a schema id can be neither resolved nor rejected.

    retry_after_s: before then, the registry wants no request; 0: it has not said so.
    """

    retry_after_s: float = 0.0


class KafkaUnavailableError(FoldlakeError):
    """The brokers do not respond within the timeout."""


class RevisionConflictError(FoldlakeError):
    """Another process changed the version registry's record first: read the record again, then retry."""


class UnknownReadModelError(FoldlakeError):
    """No read-model module declares this name."""
