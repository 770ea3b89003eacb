"""Routes and emissions: the records that they write, as native columns, and which of them are written already."""
