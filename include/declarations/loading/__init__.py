"""The modules of declarations: how they are found and imported, and which of them are left out."""
