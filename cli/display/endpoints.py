"""The addresses worth opening once the stack is up."""

from include.settings import Settings


def places(settings: Settings) -> str:
    """Return what is served where, a line each: plain text, so that a terminal of any width leaves it whole."""
    node = f"http://127.0.0.1:{settings.query_ports[0]}"
    lines = {
        "A balance": f"curl -i '{node}/api/customers.getBalance?customerId=1'",
        "Query nodes": "  ".join(f"http://127.0.0.1:{port}" for port in settings.query_ports),
        "Airflow": f"{settings.airflow.base_url}  (user admin, password {_password(settings)})",
        "Schema registry": settings.registry.url,
        "Kafka": settings.kafka.bootstrap_servers,
    }
    return "\n".join(f"  {name:<17}{place}" for name, place in lines.items())


def _password(settings: Settings) -> str:
    """Return Airflow's password; the file that keeps it may not be there yet."""
    from include.airflow.login import password

    try:
        return password(settings)
    except (OSError, ValueError, KeyError):
        return "not set yet"
