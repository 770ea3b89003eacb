"""Checks of the machine and the servers that Foldlake uses: `./foldlake doctor`."""
