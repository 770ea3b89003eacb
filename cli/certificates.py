"""`./foldlake certificates`: create, renew and show the certificates with which nodes and jobs identify themselves."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from include.nodes.certificates import Certificate


WILDCARD = "*."


class Action(StrEnum):
    """What to do with the certificates."""

    CREATE = "create"
    RENEW = "renew"
    SHOW = "show"


def run(
    action: Annotated[Action, typer.Argument(help="What to do.")] = Action.SHOW,
    node: Annotated[
        list[str] | None, typer.Option(help="With create: name=host of a further node; may be repeated.")
    ] = None,
) -> None:
    """Create, renew or show the certificates with which query nodes and jobs identify themselves to nodes.

    They are in FOLDLAKE_HOME/tls, with a CA of this deployment: one for each node, and one for jobs and commands. `./foldlake up` creates
    them unless FOLDLAKE_AUTH is none, or FOLDLAKE_NODE_TLS_CERT_FILE names one of your own CA. `create` adds what is missing. `renew` replaces
    all but the CA's. Running processes use the new ones within seconds. `show` also shows those that the settings name.

    Examples:
      ./foldlake certificates

      ./foldlake certificates create --node node-3=node-3.example

      ./foldlake certificates renew
    """
    from include.nodes import certificates
    from include.settings import Settings
    from stack.components.query_nodes import node_hosts

    settings = Settings()
    if action is Action.SHOW:
        print_certificates(certificates.known_certificates(settings))
        return
    if action is Action.CREATE:
        changed = certificates.create(settings.home, {**node_hosts(settings), **_parsed(node or ())})
    else:
        changed = certificates.renew(settings.home)
    if not changed:
        print("Nothing to create: every certificate exists, and is valid for more than 30 days.")
        return
    print_certificates(changed)


def print_certificates(certificates: "list[Certificate]") -> None:
    """Print a table, then a warning for each certificate that ends soon."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not certificates:
        console.print("There is no certificate.", highlight=False)
        return
    table = Table(header_style="bold")
    table.add_column("file", overflow="fold")
    for heading in ("subject", "hosts", "ends"):
        table.add_column(heading, no_wrap=True)
    for one in certificates:
        table.add_row(str(one.path), one.subject, ", ".join(one.hosts), f"{one.not_after:%Y-%m-%d}")
    console.print(table)
    for one in certificates:
        if one.warning:
            console.print(one.warning, style="yellow", highlight=False, markup=False, soft_wrap=True)


def _parsed(entries: "list[str] | tuple[str, ...]") -> dict[str, str]:
    """Return name -> host of the nodes in options; raises SettingsError."""
    from include.errors import SettingsError
    from include.nodes.node_url import normal_host

    found = {}
    for entry in entries:
        name, _, text = entry.partition("=")
        # The left-most label may be a wildcard: for the pods of a Kubernetes service, whose number changes.
        host = normal_host(f"[{text}]" if ":" in text else text.removeprefix(WILDCARD))
        if not name or "/" in name or host is None:
            raise SettingsError(f"--node {entry!r}: write the name of the node, `=`, and its host.")
        found[name] = f"{WILDCARD}{host}" if text.startswith(WILDCARD) else host
    return found
