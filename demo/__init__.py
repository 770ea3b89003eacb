"""The data sets of the demos, with the code that loads and checks them."""
