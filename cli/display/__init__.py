"""How commands show what they wait for: starts, runs, and the addresses worth opening."""
