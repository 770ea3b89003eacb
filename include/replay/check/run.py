"""Runs a check with DuckDB."""

from include.quality.check import CheckRequest, CheckResult
from include.replay.other_engine import OtherEngineError
from include.settings import Settings


def run_check(_settings: Settings, request: CheckRequest) -> CheckResult:
    """Run a check and return the result.

    Raises OtherEngineError where Spark must check.
    """
    raise OtherEngineError(f"DuckDB does not check {request.read_model} yet")
