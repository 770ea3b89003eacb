"""Asking query nodes from outside: who owns which partition, and what each node holds."""
