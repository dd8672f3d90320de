"""Exact token IDs: the Kimi vocabulary, the chat template, and what a reply's text lets us claim.

Importing this package loads neither tiktoken nor splintr; `vocabulary` alone does, when called.
"""
