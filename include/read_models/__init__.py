"""One declarative module per read model; each assigns its `READ_MODEL`."""
