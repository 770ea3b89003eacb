"""Records in JSON: good ones, and bad ones with the reason for which they are refused."""
