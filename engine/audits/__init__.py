"""What the rows on disk are worth: `verify`, and the regrading that `export` builds on."""
