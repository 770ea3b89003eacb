"""`./foldlake down`: stop the embedded stack."""


def run() -> None:
    """Stop all processes of the embedded stack.

    Also ends processes left over from an interrupted start. Does nothing when nothing is running. The data is kept in
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
        console.print(f"  ended {stray} stray processes")
    console.print(f"Stopped. The data is in {settings.home}.", highlight=False)
