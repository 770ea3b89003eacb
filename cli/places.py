"""The addresses worth opening once the stack is up."""

from rich.table import Table

from include.settings import Settings


def places(settings: Settings) -> Table:
    """Return a table of what is served where."""
    table = Table(box=None, show_header=False, padding=(0, 2))
    node = f"http://127.0.0.1:{settings.query_ports[0]}"
    table.add_row("A balance", f"curl '{node}/api/customers.getBalance?customerId=1'")
    table.add_row("Query nodes", "  ".join(f"http://127.0.0.1:{port}" for port in settings.query_ports))
    table.add_row("Airflow", f"{settings.airflow_base_url}  (user admin, password: {_password(settings)})")
    table.add_row("Schema registry", settings.registry_url)
    table.add_row("Kafka", settings.bootstrap_servers)
    return table


def _password(settings: Settings) -> str:
    """Return Airflow's password; the file that keeps it may not be there yet."""
    from stack import airflow

    try:
        return airflow.password(settings)
    except (OSError, ValueError, KeyError):
        return "not set yet"
