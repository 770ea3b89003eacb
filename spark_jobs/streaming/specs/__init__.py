"""The queries of the stream driver, one module per kind. A new module here adds its queries to the driver.

Each module defines `query_specs(context: StreamContext) -> list[QuerySpec]`. The driver calls it every two seconds: a new
name starts a query, a missing name stops one. It must therefore be cheap; slow work belongs in a spec's `prepare`. A module may
also define `driver_workers(context: StreamContext) -> list[DriverWorker]`: threads that the driver runs beside its queries.

A query keeps its task slots while it runs. Raise FOLDLAKE_STREAM_SPARE_QUERIES by one for every two stateless queries, or a
rebuild's candidate may be refused.
"""
