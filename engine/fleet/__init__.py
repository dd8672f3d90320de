"""Several processes as one run: shards and their shares, run directories together, Ray."""
