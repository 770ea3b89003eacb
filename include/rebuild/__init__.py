"""Rebuilding a read model beside the live version: the plan, the actions of its stages, and the removal of leftovers."""
