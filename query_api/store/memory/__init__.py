"""The in-memory store backend: in the materializer's process; HTTP workers read it over a Unix domain socket."""

from query_api.store.memory.backend import MemoryBackend

BACKEND = MemoryBackend.from_settings
