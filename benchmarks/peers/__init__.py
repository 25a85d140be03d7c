"""Our kernels and estimators beside named peers; `python benchmarks/peers` runs all and writes results/peers.json."""
