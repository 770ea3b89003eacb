"""What the HTTP server loads in each of its worker processes."""

from include.parent_death import die_with_parent
from include.settings import Settings
from query_api.http.app import create_wsgi

# It would go on answering on a port that is not its own any more.
die_with_parent()
application = create_wsgi(Settings())
