"""The grocer's baskets as invoices of tills: the input of the system `pos`, and what each of its branches must give for it."""
