"""From events to the snapshot that every front end draws from."""
