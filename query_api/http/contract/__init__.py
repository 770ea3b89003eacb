"""The contract of the HTTP API: which parameters paths have, the OpenAPI document, and the pages about it."""
