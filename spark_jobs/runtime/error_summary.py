"""One line about a failed query, for `status` and logs: what failed, and what caused it."""

LONGEST = 500


def error_summary(error: BaseException) -> str:
    """Return the first line of the error's message, and that of its first cause if the former does not contain it.

    Spark wraps an error in up to four others, and the outermost often says only that a query has ended. PySpark keeps the cause of
    a JVM exception in `_cause` (pyspark.errors.exceptions.captured), Python in `__cause__`.
    """
    outcome, cause = _first_line(error), _first_line(_first_cause(error))
    if cause in outcome:
        return outcome[:LONGEST]
    ending = f"; caused by: {cause[: LONGEST // 2]}"
    return outcome[: LONGEST - len(ending)] + ending


def _first_cause(error: BaseException) -> BaseException:
    seen = [error]
    while True:
        cause = getattr(seen[-1], "_cause", None) or seen[-1].__cause__
        if not isinstance(cause, BaseException) or cause in seen:
            return seen[-1]
        seen.append(cause)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else repr(error)
