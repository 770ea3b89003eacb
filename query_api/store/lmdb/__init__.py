"""The store backend on LMDB: one environment per version of a read model."""

from query_api.store.lmdb.backend import LmdbBackend

BACKEND = LmdbBackend.from_settings
