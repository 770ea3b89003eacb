"""The store backend on LMDB: one environment for each version of a read model."""

from query_api.store.lmdb.backend import LmdbBackend

BACKEND = LmdbBackend.from_settings
