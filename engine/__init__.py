"""The engine: datasets of prompts in, rows of exact token IDs on disk out; it knows no screen."""
