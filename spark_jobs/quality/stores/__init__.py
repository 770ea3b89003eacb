"""The stores that can be checked, each as a frame of records by replica and key."""
