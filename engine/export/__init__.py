"""Training files for the trainers of draft heads, from the rows of a run."""
