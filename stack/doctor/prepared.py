"""All checks of `./foldlake doctor`, with the settings and the stack."""

from collections.abc import Iterator

from include.machine import available_bytes
from include.settings import Settings
from stack.doctor.checks import check_downloads, check_machine
from stack.doctor.finding import Finding, State
from stack.doctor.port_checks import NeededPort, check_ports
from stack.doctor.server_checks import check_servers
from stack.lifecycle import COMPONENTS, all_processes
from stack.provisioning.layout import Layout
from stack.supervision.ports import listeners, ports_of
from stack.supervision.supervisor import Supervisor


def findings(settings: Settings) -> Iterator[Finding]:
    """Yield the findings of all checks."""
    running = {name for name, state in Supervisor(settings).states().items() if state.is_running}
    layout = Layout(settings.tools)
    own_servers = {variable for variable in COMPONENTS.values() if settings.by_variable().get(variable)}
    yield from check_machine(
        layout,
        settings.home,
        has_whole_stack=not own_servers,
        available_bytes=None if running else available_bytes(),
    )
    yield from check_stack_ports(settings, running)
    yield from check_downloads(layout, settings.maven_mirror)
    yield from check_servers(settings)


def check_stack_ports(settings: Settings, running: set[str]) -> Iterator[Finding]:
    """Check the ports of the stack's processes; those of running processes are in use by themselves."""
    needed = [
        NeededPort(number, variable, process.name)
        for process in all_processes(settings)
        if process.name not in running
        for variable, number in ports_of(process).items()
    ]
    holders = listeners()
    if needed or not running:
        yield from check_ports(needed, lambda port: holders.get(port, "another process"))
    else:
        yield Finding("ports", State.OK, "in use by the running stack")
