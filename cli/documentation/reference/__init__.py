"""The pages of docs/reference, which are made of the code: a module for each."""
