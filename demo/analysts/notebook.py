"""A notebook of marimo with the questions of docs/analysts.md. Needs requirements-analysis.txt, and no network."""

import marimo

app = marimo.App(width="medium", app_title="Foldlake")


@app.cell
def _():
    import altair as alt
    import marimo as mo

    from demo.analysts.charts import steps
    from demo.analysts.questions import QUESTIONS, QUESTIONS_OF_A_RUN
    from include.lake.sql_tables import connect
    from include.settings import Settings

    connection = connect(Settings().lake_root)
    questions = {question.title: question for question in (*QUESTIONS, *QUESTIONS_OF_A_RUN)}
    return alt, connection, mo, questions, steps


@app.cell
def _(connection, mo):
    _tables = [
        name
        for (name,) in connection.execute(
            "select database_name from duckdb_databases() where type = 'delta'"
        ).fetchall()
    ]
    mo.md(
        f"# Foldlake\nTables: {', '.join(f'`{name}`' for name in _tables)}; the commits of each are in `<table>_history`."
    )
    return


@app.cell
def _(mo, questions):
    chosen = mo.ui.dropdown(options=list(questions), value=next(iter(questions)), label="Question")
    chosen
    return (chosen,)


@app.cell
def _(chosen, mo, questions):
    query = mo.ui.code_editor(value=questions[chosen.value].query.strip(), language="sql", label="Query")
    query
    return (query,)


@app.cell
def _(alt, chosen, connection, mo, query, questions):
    _question = questions[chosen.value]
    _rows = connection.execute(query.value).fetchall()
    _names = [column[0] for column in connection.description]
    _answer = mo.ui.table([dict(zip(_names, map(str, row), strict=True)) for row in _rows], selection=None)
    _has_chart = _question.chart is not None and len(_names) >= len(_question.columns)
    _chart = (
        alt.Chart.from_dict(_question.chart(_question.title, _question.columns, _rows))
        if _has_chart
        else None
    )
    mo.vstack([_answer] if _chart is None else [_chart, _answer])
    return


@app.cell
def _(connection, mo):
    _top = connection.execute("select key from balance order by amount desc, key limit 50").fetchall()
    customer = mo.ui.dropdown(
        options=[key for (key,) in _top], value=_top[0][0], label="Balance over time of customer"
    )
    customer
    return (customer,)


@app.cell
def _(alt, connection, customer, steps):
    _rows = connection.execute(
        """
        select "occurredOn", sum(if(event_type = 'FundsAdded', amount, -amount)) over (order by source_offset)
        from events_balance where "customerId" = ? order by source_offset
        """,
        [customer.value],
    ).fetchall()
    alt.Chart.from_dict(steps(f"Customer {customer.value}", ("time", "balance"), _rows))
    return


if __name__ == "__main__":
    app.run()
