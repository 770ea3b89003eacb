"""The commands of `./foldlake`, for its help before and after the installation. Standard library only."""

# Group -> command -> description.
GROUPS = {
    "Run Foldlake": {
        "demo": "Run everything on a year of real purchases, and check every balance.",
        "up": "Start the embedded stack: Kafka, schema registry, query nodes, Airflow.",
        "down": "Stop the embedded stack. The data is kept.",
        "keys": "Create, list, rotate and revoke the API keys of callers.",
        "prepare": "Download and install Foldlake's dependencies, without starting anything.",
        "certificates": "Create, renew and show the certificates of nodes and jobs.",
    },
    "Observe": {
        "doctor": "Check machine, ports, downloads and servers, and show what to correct.",
        "status": "Show every process, the stream's lag, and how far the stores are verified.",
        "logs": "Show the log of a process.",
        "dead-letters": "List the source records that could not be decoded, and why.",
        "quality": "Check the lake and the query nodes against a replay of the events.",
    },
    "Read models": {
        "versions": "List the versions of every read model.",
        "explain": "Show the events behind a key's state, and what other versions give.",
        "rebuild": "Build a new version of a read model, verify it, and promote it.",
        "reset": "Build a new version that starts at another event, verify it, and promote it.",
        "rollback": "Make the previous version of a read model live again.",
        "retire": "Delete a previous version before its grace time ends.",
        "systems": "List the systems that Foldlake comes with, and enable them.",
    },
    "Data": {
        "load": "Append the demo's purchases to the log as events.",
        "lake": "Show the Delta tables: size, history and lag.",
        "compact": "Update the Delta tables now.",
        "sql": "Query the Delta tables in SQL: states, history, events, results of checks.",
    },
    "Development": {
        "new": "Write a new read model, route or emission to start from, with its test.",
        "openapi": "Print the contract of the HTTP API: an OpenAPI document.",
        "stream": "Run the stream driver alone, against any Kafka brokers.",
        "docs": "Build the documentation's site, or serve it on this machine.",
        "test": "Run the linter, the type checker and the tests.",
        "bench": "Run the benchmarks.",
    },
}
COMMANDS = {name: purpose for commands in GROUPS.values() for name, purpose in commands.items()}
ABOUT = "Folds an event log into read models, and serves them by key over HTTP."


def overview() -> str:
    """Return the help in plain text, for use before anything is installed."""
    lines = ["Usage: ./foldlake COMMAND [OPTIONS]", "", ABOUT]
    for group, commands in GROUPS.items():
        lines += ["", f"{group}:", *(f"  {name:<14}{purpose}" for name, purpose in commands.items())]
    return "\n".join(
        [
            *lines,
            "",
            "The first command installs two Python environments and the servers (about 1.5 GB of downloads).",
            "After that, `./foldlake COMMAND --help` describes each command. `./foldlake --version` prints the version.",
        ]
    )
