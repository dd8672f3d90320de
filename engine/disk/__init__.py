"""The run directory (DESIGN §6): one writer, and readers that trust no line."""
