"""The system orders: what stays of a million orders of which a thousand are active."""
