"""Limits of the HTTP server: what slow clients, many clients and a worker that hangs can take from the others.

An asynchronous entry would bound the time of bodies by itself. On granian 2.8.7 it raised the median of lookups by 13 to 26 % on one
connection, and more on many.
"""
