"""`eaglegen-tui report`: one self-contained HTML page about a run, to attach to a ticket."""
