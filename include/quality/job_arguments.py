"""The command-line arguments of spark_jobs/quality_check.py for a request."""

from include.quality.check import CheckRequest


def arguments(request: CheckRequest) -> list[str]:
    """Return the arguments for a request."""
    version = [] if request.version is None else ["--version", str(request.version)]
    return [
        *("--read-model", request.read_model),
        *version,
        *("--mode", request.mode.value),
        *("--stores", ",".join(request.stores)),
        *("--run-id", request.run_id),
    ]
