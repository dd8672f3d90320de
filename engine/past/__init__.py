"""What a run wrote of itself each ten seconds, and how it is played back."""
