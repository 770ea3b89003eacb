"""The demo of the system `logs`: generated log lines of a web shop, their oracle, and what the system makes of them."""
