"""The stream driver: one supervised query for every active version, and one for each topic's dead letters."""
