"""Everything that can be known before spending: `eaglegen-tui check`."""
