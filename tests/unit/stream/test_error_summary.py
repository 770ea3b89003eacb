"""A failed query's error says what failed and what caused it, in one line."""

from spark_jobs.runtime.error_summary import LONGEST, error_summary


def caused(error: Exception, *causes: BaseException) -> Exception:
    """Return the error with a chain of causes, as PySpark keeps those of a JVM exception."""
    outer: BaseException = error
    for cause in causes:
        outer._cause = cause  # type: ignore[attr-defined]
        outer = cause
    return error


def test_an_error_without_a_cause_is_its_first_line() -> None:
    assert error_summary(ValueError("a wrong setting\nwith details")) == "a wrong setting"
    assert error_summary(ValueError()) == "ValueError()"


def test_the_first_cause_is_named() -> None:
    error = caused(
        RuntimeError("[STREAM_FAILED] Query terminated\n=== Streaming Query ==="),
        RuntimeError("Job aborted"),
        OSError("No space left on device\n\tat java.io"),
    )

    assert error_summary(error) == "[STREAM_FAILED] Query terminated; caused by: No space left on device"


def test_a_cause_that_the_error_names_is_not_repeated() -> None:
    error = caused(
        RuntimeError("terminated with: No space left on device"), OSError("No space left on device")
    )

    assert error_summary(error) == "terminated with: No space left on device"


def test_the_cause_of_a_python_error_is_named() -> None:
    error = RuntimeError("the note cannot be written")
    error.__cause__ = OSError("No space left on device")

    assert error_summary(error) == "the note cannot be written; caused by: No space left on device"


def test_causes_in_a_circle_end() -> None:
    first, second = RuntimeError("first"), RuntimeError("second")
    caused(first, second, first)

    assert error_summary(first) == "first; caused by: second"


def test_a_long_error_keeps_its_cause() -> None:
    error = caused(RuntimeError("x" * 2 * LONGEST), OSError("No space left on device"))

    summary = error_summary(error)

    assert len(summary) == LONGEST
    assert summary.endswith("; caused by: No space left on device")
