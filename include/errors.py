"""The base class of Foldlake's errors, and the errors that several packages raise."""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

# The client repeats what is refused more often than this.
REMEMBERED_S = 60.0
REFUSED = frozenset({"_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "_SSL"})
CHECK_LOGIN = (
    "Hint: check FOLDLAKE_KAFKA_SECURITY_PROTOCOL, FOLDLAKE_KAFKA_SASL_MECHANISM, FOLDLAKE_KAFKA_SASL_USERNAME, "
    "FOLDLAKE_KAFKA_SASL_PASSWORD and FOLDLAKE_KAFKA_SSL_CA_FILE, and the user at the brokers."
)
CHECK_RIGHTS = "Hint: grant Foldlake's user the rights that docs/how-to/own-servers.md lists."
# In the text of each error of a broker about a missing right.
UNAUTHORIZED = "uthorization failed"


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

    retry_after_s: before then, the registry accepts no request; 0: it has named no time.
    """

    retry_after_s: float = 0.0


class _NewestRefusal:
    """Why the brokers have refused a client of this process, and when. A client that cannot authenticate repeats it: only its callback has the reason."""

    text = ""
    at_s = 0.0


def note_refusal(error: "KafkaError") -> None:
    """Remember an error that a client reports, if it is a refusal: for a client's `error_cb`."""
    if error.name() in REFUSED:
        _NewestRefusal.text, _NewestRefusal.at_s = error.str(), time.monotonic()


def refusal_hint(message: str) -> str:
    """Return the reason and the remedy of a failed request with this message, if the brokers have refused it; else an empty text."""
    if UNAUTHORIZED in message:
        return f" {CHECK_RIGHTS}"
    if _NewestRefusal.text and time.monotonic() - _NewestRefusal.at_s < REMEMBERED_S:
        return f" The brokers refuse this client: {_NewestRefusal.text}. {CHECK_LOGIN}"
    return ""


class KafkaUnavailableError(FoldlakeError):
    """The brokers do not respond within the timeout, or refuse the request, which the message then states."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message}{refusal_hint(message)}")


class RevisionConflictError(FoldlakeError):
    """Another process changed the version registry's record first: read the record again, then retry."""


class UnknownReadModelError(FoldlakeError):
    """No read-model module declares this name."""
