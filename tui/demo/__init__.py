"""The embedded demonstration: the main job on a local provider, with prompts made for it."""
