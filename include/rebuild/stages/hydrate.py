"""The stage `hydrate`: waits until every query node has loaded the candidate beside the live version."""

from datetime import timedelta

from include.rebuild.stage import SERVE, Action, PlanStage, StageRun
from include.rebuild.stages.compare import COMPARISON_ID
from include.rebuild.stages.verify import CHECK_ID


def hydrate(run: StageRun) -> str:
    """Wait until the nodes have loaded the version; returns what it changes and the check's results in Markdown, for the approval."""
    from include.rebuild.comparison.summary import comparison_summary
    from include.rebuild.hydration import hydrate_version
    from include.rebuild.verification_summary import verification_summary

    hydrate_version(run.settings, run.read_model, run.version)
    settings, url = run.settings, run.settings.reports_base_url
    changes = comparison_summary(settings.home, url, run.text(COMPARISON_ID))
    return f"{changes}\n\n{verification_summary(settings.lake_root, url, run.text(CHECK_ID))}"


HYDRATE = PlanStage(
    "hydrate",
    Action(hydrate),
    description="waits until every query node has loaded every partition of N+1 that it owns or is a standby for",
    on_failure="a query node is down, or has no room: `./foldlake status` shows which",
    next_try="continues to wait",
    timeout=timedelta(hours=2),
    group=SERVE,
)
