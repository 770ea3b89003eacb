"""`./foldlake down`: stop the embedded stack."""


def run() -> None:
    """Stop the embedded stack, and leave no process behind.

    Also ends the processes that an interrupted start has left. Does nothing when nothing is running. The data stays in
    FOLDLAKE_HOME.

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
        stray = stop(settings, display)
    if stray:
        console.print(f"  {stray} stray processes ended")
    console.print(f"Stopped. The data is in {settings.home}.", highlight=False)
