"""The WSGI entry point, which the HTTP server loads in each worker process."""

from include.parent_death import die_with_parent
from include.settings import Settings
from query_api.http.app import create_wsgi

# An orphaned worker would keep answering on a port that another server may have taken over.
die_with_parent()
application = create_wsgi(Settings())
