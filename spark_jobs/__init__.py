"""The Spark applications, one module each; the packages below contain their parts."""
