"""`./foldlake down`: stop the embedded stack."""


def run() -> None:
    """Stop the embedded stack, in reverse order, and leave no process behind.

    Works as well after a start that was killed half-way, and where nothing runs. The data stays in FOLDLAKE_HOME.

    Example:
      ./foldlake down
    """
    from rich.console import Console

    from cli.display.start_display import ProgressDisplay
    from include.settings import Settings
    from stack.lifecycle import stop

    console = Console()
    settings = Settings()
    with ProgressDisplay(console) as display:
        leftovers = stop(settings, display)
    if leftovers:
        console.print(f"  {leftovers} left-over processes ended")
    console.print(f"Down. The data is in {settings.home}.", highlight=False)
