"""Application: replaces the content of `lake/<model>` with the live version."""

import argparse

from pyspark.sql import SparkSession

from include.declarations.load import read_model
from include.settings import Settings
from spark_jobs.lake.live_lake import promote
from spark_jobs.runtime.lake_job import run_lake_job


def main() -> None:
    """Run under spark-submit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--read-model", required=True, help="name of the read model")
    name = parser.parse_args().read_model

    def job(spark: SparkSession, settings: Settings) -> None:
        promote(spark, settings, read_model(name, settings.declaration_folders))

    run_lake_job("promote-lake", job)


if __name__ == "__main__":
    main()
