"""Systems: read models, routes and emissions that are declared together and enabled together, a folder for each."""
