"""Rules of declarations as Spark SQL: their syntax and columns are checked without Spark, and more is derived from them."""
