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
        "Top customers",
        """
select key as customer, amount, event_count as purchases, round(amount / event_count, 2)::decimal(18, 2) as per_purchase
from balance order by amount desc, key limit 5
""",
        ("customer", "balance", "purchases", "balance per purchase"),
    ),
    Question(
        "Which of the top customers have bought less in the second half of the year? (State joined with events)",
        """
with halves as (
    select "customerId" as key, sum(amount) filter ("occurredOn" < '2017-07-01') as first_half,
           sum(amount) filter ("occurredOn" >= '2017-07-01') as second_half
    from events_balance group by all
)
select key as customer, first_half, second_half
from (from balance order by amount desc, key limit 50) join halves using (key)
where second_half < 0.7 * first_half order by second_half - first_half, key
""",
        ("customer", "first half", "second half"),
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
        "All events of a customer are in one partition, so `source_offset` is their order: the running sum is what the fold has computed.",
    ),
    Question(
        "How many customers have which balance?",
        """
select least(floor(amount / 500) * 500, 5000)::integer as from_amount, count(*) as customers
from balance group by all order by all
""",
        ("balance from (5,000: and more)", "customers"),
        bars,
        "balances",
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
        "How many customers bought for the last time in which month?",
        """
select strftime(last_purchase, '%Y-%m') as month, count(*) as customers
from (select max("occurredOn") as last_purchase from events_balance group by "customerId") group by all order by all
""",
        ("month", "customers"),
        bars,
        "last-purchases",
    ),
    Question(
        "What were the balances at the end of March?",
        """
select "customerId" as customer, sum(if(event_type = 'FundsAdded', amount, -amount)) as balance
from events_balance where occurred_month <= '2017-03' group by all order by balance desc, customer limit 5
""",
        ("customer", "balance"),
        about="The events answer for any time. The table's own history is shorter, and records when Foldlake ingested them.",
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
        about="This is the table as of the newest commit of version 1 of the read model, whose fold is the sum.",
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
        about="Version 2 was a [rebuild](rebuild.md) with a fold that gives a bonus of 1 % on each purchase of 100.00 or more.",
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
    Question(
        "How much was checked where?",
        """
select version, store, mode, count(distinct run_id) as checks, count(distinct expectation) as expectations,
       max(checked) as records, sum(failed) as failed
from _quality where read_model = 'balance' group by all order by all
""",
        ("version", "store", "mode", "checks", "expectations", "records at most", "failed"),
    ),
    Question(
        "What happened to the table?",
        """
select model_version, operation, count(*) as commits, min(committed_at) as first, max(committed_at) as last
from balance_history where model_version is not null group by all order by first
""",
        ("version", "operation", "commits", "first", "last"),
    ),
)
