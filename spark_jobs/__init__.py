"""The applications that Spark runs, one module for each; their parts are in the packages below."""
