"""A sample of keys that a node and a Spark job choose by the same rule, so that they compare the same keys."""

from dataclasses import dataclass


@dataclass(frozen=True)
class KeySample:
    """The keys whose CRC-32 modulo `buckets` equals `bucket`; with 1 bucket, all keys."""

    bucket: int = 0
    buckets: int = 1

    @property
    def parameter(self) -> str | None:
        """The value of the HTTP parameter `sample`, such as 3/100; None if no parameter is needed."""
        return f"{self.bucket}/{self.buckets}" if self.buckets > 1 else None


NO_SAMPLING = KeySample()
