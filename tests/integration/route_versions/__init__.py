"""An emission is handed over between versions that fold different versions of a routed topic, on a real broker, with a real driver."""
