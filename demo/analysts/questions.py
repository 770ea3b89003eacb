"""The questions of docs/analysts.md: each with its query, and how the answer is shown."""

from collections.abc import Callable
from dataclasses import dataclass

from demo.analysts.charts import Rows, Spec, bars, heat_map, points, steps


@dataclass(frozen=True)
class Question:
    """A question and the query that answers it.

    columns: titles of the columns of the answer. chart: builds the plot from title, columns and rows; None: a table is shown instead.
    picture: name of the plot's file. about: what to know about the answer.
    """

    title: str
    query: str
    columns: tuple[str, ...]
    chart: Callable[[str, tuple[str, ...], Rows], Spec] | None = None
    picture: str = ""
    about: str = ""


# Answered by the data set alone, so that every run of the demo gives the same.
QUESTIONS = (
    Question(
        "Turnover by month",
        """
select occurred_month, sum(amount) as turnover
from events_balance where event_type = 'FundsAdded' and occurred_month < '2018'
group by all order by all
""",
        ("month", "turnover"),
        bars,
        "turnover-by-month",
        "A condition on `occurred_month` reads only the files of these months.",
    ),
    Question(
        "Balance over time of one customer",
        """
select "occurredOn", sum(if(event_type = 'FundsAdded', amount, -amount)) over (order by source_offset) as balance
from events_balance where "customerId" = '1609' order by source_offset
""",
        ("time", "balance"),
        steps,
        "balance-over-time",
        "All events of a customer are in one partition, so the running sum equals the fold.",
    ),
    Question(
        "When do they buy?",
        """
select hour("occurredOn") as hour, dayname("occurredOn")[:3] as day, count(*) as purchases
from events_balance group by hour, day, isodow("occurredOn") order by isodow("occurredOn"), hour
""",
        ("hour of the day", "day", "purchases"),
        heat_map,
        "hours",
        "The times are those of the tills, taken as UTC.",
    ),
    Question(
        "What were the balances at the end of March?",
        """
select "customerId" as customer, sum(if(event_type = 'FundsAdded', amount, -amount)) as balance
from events_balance where occurred_month <= '2017-03' group by all order by balance desc, customer limit 5
""",
        ("customer", "balance"),
        about="Events cover any time; the table's history is shorter.",
    ),
    Question(
        "Does each state equal its events?",
        """
set variable first_version = (select max(delta_version) from balance_history where model_version = 1);
select count(*) as customers, count(*) filter (state.amount is distinct from log.amount) as different, sum(log.amount) as total
from (from balance at (version => getvariable('first_version'))) as state
full join (
    select "customerId" as key, sum(if(event_type = 'FundsAdded', amount, -amount)) as amount from events_balance group by all
) as log using (key)
""",
        ("customers", "different", "total"),
        about="The query reads the newest commit of version 1, which sums the amounts.",
    ),
    Question(
        "What changed between versions?",
        """
set variable before = (select max(delta_version) from balance_history where model_version = 1);
set variable after = (select max(delta_version) from balance_history where model_version = 2);
select case when old.key is null then 'added' when new.key is null then 'gone' when old.amount = new.amount then 'same' else 'changed' end as keys,
       count(*) as customers, sum(old.amount) as before, sum(new.amount) as after, max(new.amount - old.amount) as largest_change
from (from balance at (version => getvariable('before'))) as old
full join (from balance at (version => getvariable('after'))) as new using (key)
group by all order by all
""",
        ("keys", "customers", "total before", "total after", "largest change"),
        about="Version 2 is a [rebuild](rebuild.md) with a bonus of 1 % on each purchase of 100.00 or more.",
    ),
)

# Answered by when the demo, its compactions and checks ran: another run gives another answer.
QUESTIONS_OF_A_RUN = (
    Question(
        "Quality over time",
        """
select checked_at, max(checked) as records, if(bool_and(passed), mode || ', passed', mode || ', failed') as result
from _quality where read_model = 'balance' group by run_id, checked_at, mode order by checked_at
""",
        ("time", "records checked", "check"),
        points,
        "quality",
    ),
)
