"""`./foldlake prepare`: download and install Foldlake's dependencies."""


def run() -> None:
    """Download and install Foldlake's dependencies: two Python environments, Kafka, the schema registry and Spark.

    They are installed in FOLDLAKE_TOOLS (default: .foldlake/tools); the downloads are about 1.5 GB. Every other command
    also installs what is missing; use this one to do only that, for example in an image build. After an interruption,
    run it again to continue.

    Example:
      ./foldlake prepare
    """
    from include.settings import Settings

    # The launcher has prepared what was missing before this process started.
    print(f"Everything is ready in {Settings().tools}.")
