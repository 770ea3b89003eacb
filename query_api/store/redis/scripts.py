"""The Lua scripts that a store's server runs: each is atomic, so a partition's records, order and head always fit together."""

from hashlib import sha1

# The results of COMMIT and FORGET.
FENCED, DONE, DAMAGED = 0, 1, -1

# KEYS: hash, sorted set. ARGV: the head that the writer expects (empty: none), the new head, whether to empty the partition first (1),
# then for each change: `put`, `replace` or `delete`, the key, the record. `put` keeps a stored record that the new
# one does not supersede (include.position): see record_format.py for where the number of events is. The writer is fenced unless the head is exactly what it has last seen: only then does its position
# say which changes are next.
COMMIT = """
local head = redis.call('HGET', KEYS[1], '') or ''
if head ~= ARGV[1] then return 0 end
if head == '' or ARGV[3] == '1' then
  redis.call('UNLINK', KEYS[1], KEYS[2])
elseif redis.call('HLEN', KEYS[1]) ~= redis.call('ZCARD', KEYS[2]) + 1 then
  return -1
end
for i = 4, #ARGV, 3 do
  local change, key, record = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if change == 'delete' then
    redis.call('HDEL', KEYS[1], key)
    redis.call('ZREM', KEYS[2], key)
  else
    local stored = redis.call('HGET', KEYS[1], key)
    if not stored or change == 'replace'
        or struct.unpack('>i8', record, 5) >= struct.unpack('>i8', stored, 5) then
      redis.call('HSET', KEYS[1], key, record)
      if not stored then redis.call('ZADD', KEYS[2], 0, key) end
    end
  end
end
redis.call('HSET', KEYS[1], '', ARGV[2])
return 1
"""

# KEYS: hash, sorted set. ARGV: the head that the writer expects.
FORGET = """
local head = redis.call('HGET', KEYS[1], '') or ''
if head ~= ARGV[1] then return 0 end
redis.call('UNLINK', KEYS[1], KEYS[2])
return 1
"""

# KEYS: hash, sorted set. ARGV: the bounds of the keys in the form of ZRANGE BYLEX, the maximum number.
# Returns the number of keys in the partition, those of the range, then the head and their records.
SCAN = """
local keys = redis.call('ZRANGE', KEYS[2], ARGV[1], ARGV[2], 'BYLEX', 'LIMIT', 0, ARGV[3])
local found = {redis.call('HGET', KEYS[1], '')}
for i = 1, #keys, 5000 do
  local records = redis.call('HMGET', KEYS[1], unpack(keys, i, math.min(i + 4999, #keys)))
  for _, record in ipairs(records) do found[#found + 1] = record end
end
return {redis.call('ZCARD', KEYS[2]), keys, found}
"""


def digest(script: str) -> str:
    """Return the name by which a server runs a script that it has loaded."""
    return sha1(script.encode(), usedforsecurity=False).hexdigest()
