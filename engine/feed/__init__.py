"""From source files to jobs: read lazily, known by content, not read again."""
