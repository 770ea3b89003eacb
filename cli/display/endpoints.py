"""The addresses of a running stack."""

from pathlib import Path

from include.settings import AirflowSettings, Settings


def endpoints(settings: Settings) -> str:
    """Return the addresses of the stack's servers, one per line, in plain text without wrapping."""
    node = f"http://127.0.0.1:{settings.query_ports[0]}"
    lines = {
        "Status page": f"{node}/",
        "A balance": f"curl -i '{node}/api/customers.getBalance?customerId=1'",
        "Query nodes": "  ".join(f"http://127.0.0.1:{port}" for port in settings.query_ports),
        "Airflow": f"{settings.airflow.pages_url}  (user admin, password {_password(settings.home, settings.airflow)})",
        "Schema registry": settings.registry.url,
        "Kafka": settings.kafka.bootstrap_servers,
    }
    return "\n".join(f"  {name:<17}{address}" for name, address in lines.items())


def _password(home: Path, airflow: AirflowSettings) -> str:
    """Return Airflow's password, or a note if its file does not exist yet."""
    from include.airflow.login import password

    try:
        return password(home, airflow)
    except (OSError, ValueError, KeyError):
        return "not set yet"
