"""asv suites (bench_*.py), which follow our own history, and peers.py, which compares with other libraries."""
