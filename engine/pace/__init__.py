"""How many requests may start, and when again: pure policies, told what happened."""
