"""The system `pos`: point-of-sale invoices, their shipments, loyalty points and line items for analysts."""
