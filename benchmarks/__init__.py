"""Our own history (asv_suites), other libraries (peers), the machine's limits (roofline), growth, and their tables."""
