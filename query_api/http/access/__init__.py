"""Access over HTTP: what each request needs, the guard in front of all of them, and the sign-in page."""
