"""What can go wrong with one attempt: the table of families, and how a fault is told."""
