"""The store backend on a Redis or Valkey that all nodes share: each partition is written by its owner, and read by every node."""

from query_api.store.redis.backend import RedisBackend

BACKEND = RedisBackend.from_settings
