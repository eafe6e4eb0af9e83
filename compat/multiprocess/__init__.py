"""multiprocess's own tests, which are inside its wheels."""
