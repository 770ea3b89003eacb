"""Shows what a followed rebuild changes, as soon as each of its versions has been compared."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from cli.display.comparison_display import print_comparison, print_exceeded
from include.airflow.dag_run import DagRun, RunEvent, TaskChanged
from include.errors import FoldlakeError
from include.rebuild.comparison import report
from include.rebuild.comparison.thresholds import exceeded, thresholds_of
from include.rebuild.stage import report_id
from include.rebuild.stages.build import COMPARE
from include.settings import Settings
from include.versions.registry import VersionRegistry, record_of


class ShownChanges:
    """Shows each comparison of one run once. exceeded: whether one of them exceeds a threshold of the request."""

    def __init__(self, console: Console, settings: Settings, conf: Mapping[str, Any]) -> None:
        self.exceeded = False
        self._console = console
        self._settings = settings
        self._conf = conf
        self._thresholds = thresholds_of(conf)

    def show_if_compared(self, run: DagRun, event: RunEvent) -> None:
        """Show a comparison if the event is that its task has succeeded."""
        match event:
            case TaskChanged(task) if task.state == "success":
                read_model, _, stage = task.task_id.rpartition(".")
                if stage == COMPARE.name:
                    self._show_of_run(run.run_id, read_model or str(self._conf["read_model"]))

    def _show_of_run(self, airflow_run: str, read_model: str) -> None:
        try:
            self._show(airflow_run, read_model)
        except FoldlakeError as error:
            # The rebuild goes on.
            self._console.print(f"What changes cannot be shown: {error}", style="yellow", markup=False)

    def _show(self, airflow_run: str, read_model: str) -> None:
        with VersionRegistry(self._settings.kafka.bootstrap_servers) as registry:
            record = record_of(registry, read_model)
        # A dry run may have abandoned it already.
        version = record.of_run(airflow_run)
        if version is None:
            return
        run_id = report_id(read_model, version.number)
        comparison = report.read(self._settings.home, run_id)
        if comparison is None:
            return
        print_comparison(self._console, comparison)
        found = exceeded(self._thresholds, comparison)
        self.exceeded |= bool(found)
        print_exceeded(self._console, found)
        url = report.report_url(self._settings.reports_base_url, run_id)
        self._console.print(f"All changes: {url}", highlight=False, soft_wrap=True)
