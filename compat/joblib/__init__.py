"""joblib's own tests of hashing, dumping and caching, which are inside its wheel."""
