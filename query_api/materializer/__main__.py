"""`python -m query_api.materializer`: the materializer process of the node that the settings describe.

The embedded stack starts it beside the present one, which it replaces. See decision 73.
"""

import logging
import signal
import sys

from include.errors import FoldlakeError
from include.observability.logs import configure_logs
from include.process import is_held, is_replaced, report_ready
from include.settings import Settings
from query_api.materializer.node_materializer import Materializer

# With the default of 5 ms, another thread holding the GIL delays the thread that follows the live version.
SWITCH_INTERVAL_S = 0.001

log = logging.getLogger(__name__)


def main() -> int:
    """Run the materializer of the node that the settings describe."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    waits = is_held()
    try:
        settings = Settings()
        configure_logs(settings.log.format, "materializer", settings.node.name)
        materializer = Materializer(settings, is_replaced=is_replaced)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: materializer.stop())
        materializer.observe()
        if waits:
            report_ready()
        materializer.run(waits=waits)
    except FoldlakeError as error:
        log.error("%s", error)  # noqa: TRY400 - operators need the message, not a traceback
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
