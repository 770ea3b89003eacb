"""What `./foldlake new` and docs/read-models.md have a user write, tried as it is."""
