"""Creates the store for a name."""

from include.lake.tables import staging_path, table_path
from include.quality.check import StoreName
from spark_jobs.quality.stores.base import Store, Target
from spark_jobs.quality.stores.changelog import ChangelogStore
from spark_jobs.quality.stores.delta_table import DeltaStore
from spark_jobs.quality.stores.nodes import NodesStore


def store_of(name: StoreName, target: Target) -> Store:
    """Return the named store of the target; raises QualityError when it does not exist."""
    settings, model = target.settings, target.model.name
    match name:
        case StoreName.LAKE:
            return DeltaStore(name, target, table_path(settings.lake_root, model))
        case StoreName.STAGING:
            return DeltaStore(name, target, staging_path(settings.lake_root, model, target.version.number))
        case StoreName.CHANGELOG:
            return ChangelogStore(target)
        case StoreName.NODES:
            return NodesStore(target)
