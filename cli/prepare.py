"""`./foldlake prepare`: download and install all that is needed, and nothing else."""


def run() -> None:
    """Say where everything is: what was missing has been prepared before this command line could start.

    Takes two Python environments and the servers into the directory FOLDLAKE_TOOLS. Run again after an interruption,
    it goes on where it stopped.

    Example:
      ./foldlake prepare
    """
    from include.settings import Settings

    print(f"Everything is ready in {Settings().tools}.")
