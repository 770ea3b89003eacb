"""What the system `logs` must make of log lines, computed by DuckDB from their raw text."""

from collections.abc import Iterable
from itertools import islice

import duckdb
import pyarrow as pa

from demo.logs.lines import LogLine

BATCH_LINES = 20_000
TABLES = """
create table parsed as
select text, written_ms, json_valid(text) as is_json, if(is_json, text, '{}')::json as line,
       line->>'$.logger_name' as logger, (line->>'$."@timestamp"')::timestamptz as logged_at,
       if(json_type(line, '$.product_id') = 'VARCHAR', line->>'$.product_id', null) as product,
       if(json_type(line, '$.browser_hash') = 'VARCHAR', line->>'$.browser_hash', null) as browser,
       if(json_type(line, '$.action') = 'VARCHAR', line->>'$.action', null) as action,
       if(json_type(line, '$.solved') = 'BOOLEAN', (line->>'$.solved')::boolean, null) as solved
from lines;

create table expected_letters as
select if(is_json, 'invalid_field', 'malformed_json') as reason, text from parsed
where not is_json
   or logger = 'product-views' and (logged_at is null or product is null)
   or logger = 'browser-actions' and (logged_at is null or browser is null or action is null)
   or logger = 'captcha-results' and (logged_at is null or browser is null or solved is null);

create table expected_views as
select product as "productId", logged_at as "occurredOn" from parsed
where logger = 'product-views' and logged_at is not null and product is not null;

create table expected_counts as select "productId", count(*) as views from expected_views group by all;

create table expected_events as
select browser as "browserHash", logged_at as "occurredOn", if(logger = 'browser-actions', 'ACTION', 'CAPTCHA') as kind,
       if(logger = 'browser-actions', action, null) as action, logger = 'captcha-results' and solved as solved
from parsed
where logged_at is not null and browser is not null
  and (logger = 'browser-actions' and action is not null or logger = 'captcha-results' and solved is not null);

create table expected_browsers as
select browser as "browserHash", coalesce(actions, 0) as actions, coalesce(solved, false) as solved,
       if(coalesce(solved, false), 0, coalesce(actions, 0)) as unsolved
from (select "browserHash" as browser, count(*) as actions from expected_events where kind = 'ACTION' group by all)
full join (select "browserHash" as browser, bool_or(solved) as solved from expected_events where kind = 'CAPTCHA' group by all)
using (browser);

create table windowed as
select browser, logged_at as at_time, written_ms, unnest(generate_series(
         (ceil((epoch_ms(logged_at) - 4999) / 2000.0) * 2000)::bigint, epoch_ms(logged_at), 2000)) as start_ms
from parsed where logger = 'browser-actions' and logged_at is not null and browser is not null and action is not null;

create table judged as
select *, written_ms < start_ms + 5000 + 1000 * $lateness_s and epoch_ms(at_time) <= written_ms + 1000 * $lateness_s as is_accepted
from windowed;

create table expected_late as
select browser as "browserHash", at_time as "occurredOn", make_timestamptz(start_ms * 1000) as "windowStart",
       make_timestamptz(written_ms * 1000) as "writtenOn"
from judged where not is_accepted;

create table all_windows as
select browser || '/' || strftime(make_timestamptz(start_ms * 1000), '%Y-%m-%dT%H:%M:%SZ') as key, count(*) as actions,
       make_timestamptz(start_ms * 1000) as window_start, make_timestamptz((start_ms + 5000) * 1000) as window_end
from judged where is_accepted group by browser, start_ms;

create table expected_windows as
from all_windows where window_end >= (select max(window_end) from all_windows) - to_seconds($expiry_s);
"""


def oracle(lines: Iterable[LogLine], lateness_s: int = 30, expiry_s: int = 600) -> duckdb.DuckDBPyConnection:
    """Return a connection with the expected records of each branch in tables `expected_<name>`.

    lateness_s, expiry_s: the settings of the windows.
    """
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    connection.execute("create table lines (text varchar, written_ms bigint)")
    left = iter(lines)
    while batch := list(islice(left, BATCH_LINES)):
        columns = {"text": [line.text for line in batch], "written_ms": [line.written_ms for line in batch]}
        connection.register("batch", pa.table(columns))
        connection.execute("insert into lines from batch")
        connection.unregister("batch")
    for statement in TABLES.split(";"):
        if statement.strip():
            values = {"lateness_s": lateness_s, "expiry_s": expiry_s}
            connection.execute(
                statement, {name: value for name, value in values.items() if f"${name}" in statement}
            )
    return connection
