"""The HTTP API of `browser-windows`: the windows of a browser that begin in a range of time."""

from include.declarations.windows.window_lookup import WindowLookup

from .hopping import WINDOW

DECLARATIONS = [
    WindowLookup(
        "/api/browsers.getWindows",
        parameter="browserHash",
        window=WINDOW,
        fields=("window_start", "window_end", "actions"),
        max_item_bytes=64,
        example="ad0891632773690e",
    ),
]
