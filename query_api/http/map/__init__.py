"""The map of the items of a read model that declares a location."""
