"""Routes, re-keyed read models and kinds from outside, on one home: one driver runs all of them on one source topic."""
