"""The expressions of declarations: the Avro types of their columns, and the errors that they raise; and those that read JSON strictly."""
