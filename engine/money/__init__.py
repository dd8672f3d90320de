"""What may be spent: budgets, the balance, prices, and never paying twice."""
