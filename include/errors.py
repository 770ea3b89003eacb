"""The root of every error that Foldlake raises on purpose."""


class FoldlakeError(Exception):
    """Something that Foldlake decided not to do; the message says what, why and what to do next."""


class SettingsError(FoldlakeError):
    """A setting has a value that cannot work."""


class ReadModelError(FoldlakeError):
    """A read-model module declares something that cannot be folded."""


class SchemaError(FoldlakeError):
    """An Avro schema is missing, unreadable or does not fit its use."""


class RegistryUnavailableError(FoldlakeError):
    """The schema registry does not answer, so nothing can be decided about a schema id."""


class KafkaUnavailableError(FoldlakeError):
    """The brokers do not answer within the time allowed."""


class RevisionConflictError(FoldlakeError):
    """Somebody else changed the version registry's record first: read it again, then decide again."""


class UnknownReadModelError(FoldlakeError):
    """No read-model module declares this name."""
