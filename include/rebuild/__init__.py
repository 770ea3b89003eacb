"""Rebuilding a read model beside the live version: the plan, the action of each of its stages, and what they leave."""
