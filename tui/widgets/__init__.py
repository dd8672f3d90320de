"""Textual widgets; they hold no logic beyond showing lines."""
