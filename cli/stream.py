"""`./foldlake stream`: run the stream driver alone, against any Kafka brokers."""

import os

import typer

# All arguments are passed to the stream driver.
CONTEXT_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}
OWN_HELP = True


def run(context: typer.Context) -> None:
    """Run the stream driver alone, against any Kafka brokers, without the rest of the stack.

    `./foldlake stream --help` lists the driver's own options.
    """
    from include.settings import CHECKOUT, Settings
    from stack.tools import Tools

    python = str(Tools(Settings().tools).stream_python)
    # A user's SPARK_HOME may point to a different Spark.
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    environment["PYTHONPATH"] = str(CHECKOUT)
    os.execve(python, [python, "-m", "spark_jobs.standalone_stream", *context.args], environment)  # noqa: S606
