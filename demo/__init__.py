"""The demos' data sets, with the code that loads and checks them."""
