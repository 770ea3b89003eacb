"""What the status page shows: one module for each section. A section that cannot be read says why, and does not affect the others."""
