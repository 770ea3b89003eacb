"""`./foldlake stream`: run the stream driver alone, against any Kafka brokers."""

import typer

# All arguments are passed to the stream driver.
CONTEXT_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}
OWN_HELP = True


def run(context: typer.Context) -> None:
    """Run the stream driver alone, against any Kafka brokers, without the rest of the stack.

    `./foldlake stream --help` lists the driver's own options.
    """
    from stack.launchers.standalone_submit import run

    raise typer.Exit(run(context.args))
