"""The stream driver: discovers query specifications and runs a supervised query for each."""
