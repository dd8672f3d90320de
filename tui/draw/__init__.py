"""Pure drawing: a Snapshot and a size in, lines of styled text out; nothing here knows Textual."""
