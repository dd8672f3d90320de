"""The front ends: the Textual screen and the command line; both see only snapshots and commands."""
