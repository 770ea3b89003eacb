#!/bin/sh
# Spark starts this in place of Python: the Python process runs already, and waits for the address of the JVM's gateway.
# See stack/launchers/early_python.py.
umask 077
printf '%s\n%s\n' "$PYSPARK_GATEWAY_PORT" "$PYSPARK_GATEWAY_SECRET" > "$EARLY_PYTHON/gateway.new" || exit 1
mv "$EARLY_PYTHON/gateway.new" "$EARLY_PYTHON/gateway" || exit 1
# Returns when the Python process has ended.
flock "$EARLY_PYTHON/alive" true
# A process that leaves no status was killed: 128 and SIGKILL's number, as a shell reports it.
{ read -r status < "$EARLY_PYTHON/status"; } 2> /dev/null || status=137
exit "$status"
