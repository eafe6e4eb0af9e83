"""Hugging Face datasets' own tests of its hashes and caches, and a table of hashes that must not change."""
