"""The time without a fold when `up` replaces the driver, and when the driver is killed."""
