"""What a manifest's values must be, checked before anything is sent: pure, each fault in words."""
