"""The stores that a check can read, each as a frame of records by replica and key."""
