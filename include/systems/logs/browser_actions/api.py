"""The HTTP API of `browser-actions`: the actions of a browser."""

from include.declarations.api import NamedLookup

DECLARATIONS = [
    NamedLookup(
        "/api/browsers.getActions",
        parameter="browserHash",
        fields=("unsolved", "actions", "solved"),
        max_key_bytes=64,
        example="ad0891632773690e",
    ),
]
