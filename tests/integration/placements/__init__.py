"""Tests of the placements of a read model, with two real nodes."""
