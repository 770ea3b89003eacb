"""What the system `logs` must make of log lines, computed by DuckDB from their raw text."""

from collections.abc import Iterable
from itertools import islice

import duckdb
import pyarrow as pa

from demo.logs.lines import LogLine

BATCH_LINES = 20_000
TABLES = """
create table parsed as
select text, json_valid(text) as is_json, if(is_json, text, '{}')::json as line,
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
"""


def oracle(lines: Iterable[LogLine]) -> duckdb.DuckDBPyConnection:
    """Return a connection with the expected records of each branch in tables `expected_<name>`."""
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    connection.execute("create table lines (text varchar)")
    left = iter(lines)
    while texts := [line.text for line in islice(left, BATCH_LINES)]:
        connection.register("batch", pa.table({"text": texts}))
        connection.execute("insert into lines from batch")
        connection.unregister("batch")
    for statement in TABLES.split(";"):
        if statement.strip():
            connection.execute(statement)
    return connection
