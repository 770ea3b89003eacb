"""The stream driver: discovers query specifications and runs one supervised query for each."""
