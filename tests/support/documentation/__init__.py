"""The pages of the documentation: their English, and their examples, which tests run as a reader does."""
