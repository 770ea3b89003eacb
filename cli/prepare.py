"""`./foldlake prepare`: download and install what Foldlake needs."""


def run() -> None:
    """Download and install what Foldlake needs: two Python environments, Kafka, the schema registry and Spark.

    Everything goes into FOLDLAKE_TOOLS (default: .foldlake/tools), about 1.5 GB of downloads. Every other command
    prepares what is missing too; use this one to do only that, as in an image build. After an interruption, run it again
    to continue.

    Example:
      ./foldlake prepare
    """
    from include.settings import Settings

    # The launcher has prepared what was missing before this process started.
    print(f"Everything is ready in {Settings().tools}.")
