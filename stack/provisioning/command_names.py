"""The commands and what each is for, as `./foldlake --help` says before anything is installed. Standard library only."""

COMMANDS = {
    "prepare": "Download and install all that is needed; every other command does so too.",
    "demo": "Prepare, start, load a year of a real grocer's baskets, check every balance.",
    "up": "Start the embedded stack; does nothing where it is already up.",
    "down": "Stop the embedded stack, and whatever an interrupted start left behind.",
    "status": "Show every process, and how far behind the stream is.",
    "logs": "Show what a process wrote.",
    "dead-letters": "List what could not be decoded, and why.",
    "load": "Append the grocer's baskets to the log as events.",
    "lake": "Show the tables for analysts, their history, how far behind they are.",
    "compact": "Bring the tables up to date now.",
    "rebuild": "Build a new version of a read model, prove it, promote it.",
    "rollback": "Make a previous version of a read model live again.",
    "retire": "Retire a previous version before its time.",
    "versions": "List the versions of every read model.",
    "quality": "Check whether lake and query nodes hold what the events fold to.",
    "stream": "Run the stream driver alone, against any broker.",
    "test": "Run the tests, the linter and the type checker.",
    "bench": "Run the benchmarks.",
}
ABOUT = "Folds an event log into read models, and serves them by key over HTTP."


def overview() -> str:
    """Describe the commands in plain text, for a machine on which nothing is prepared yet."""
    lines = [f"  {name:<14}{purpose}" for name, purpose in COMMANDS.items()]
    return "\n".join(
        [
            "Usage: ./foldlake COMMAND [OPTIONS]",
            "",
            ABOUT,
            "",
            "Commands:",
            *lines,
            "",
            "The first command that you run prepares two Python environments and the servers (about 1.5 GB).",
            "Then `./foldlake COMMAND --help` describes each command.",
        ]
    )
