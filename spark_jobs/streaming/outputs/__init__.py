"""What queries write that write each output once: how it is sent, and who writes it."""
