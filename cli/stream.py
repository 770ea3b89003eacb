"""`./foldlake stream`: run the stream driver alone, against any broker."""

import os

import typer

# What it does not know goes on to the stream driver.
CONTEXT_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}
OWN_HELP = True


def run(context: typer.Context) -> None:
    """Run the stream driver alone, against any broker, without Airflow and without the rest of the stack.

    `./foldlake stream --help` lists its options.
    """
    from include.settings import CHECKOUT, Settings
    from stack.tools import Tools

    python = str(Tools(Settings()).stream_python)
    # Not the main environment's Spark, should the user have set one.
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    environment["PYTHONPATH"] = str(CHECKOUT)
    os.execve(python, [python, "-m", "spark_jobs.standalone_stream", *context.args], environment)  # noqa: S606
