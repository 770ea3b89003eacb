"""The data sets of the demos, and what loads and checks them."""
