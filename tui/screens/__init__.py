"""The screens: the overview, and the dialogs above it."""
