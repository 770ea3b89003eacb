"""The queries of the stream driver, one module for each kind. A new file here adds its queries to the driver.

Each module has a function `query_specs(context: StreamContext) -> list[QuerySpec]`. The driver calls it every two seconds:
a new name starts a query, a missing name stops one. So it must be cheap; slow work belongs into a spec's `prepare`.
"""
