"""What the HTTP server loads in each of its worker processes."""

from include.settings import Settings
from query_api.app import create_wsgi
from query_api.parent_death import die_with_parent

die_with_parent()
application = create_wsgi(Settings())
