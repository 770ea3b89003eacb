"""One module per application that Spark runs, and the pieces that they are made of."""
