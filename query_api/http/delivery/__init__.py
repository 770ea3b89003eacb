"""How answers reach their clients: also pages of other origins, and compressed."""
