"""Tests of the requests that query nodes answer or refuse."""
