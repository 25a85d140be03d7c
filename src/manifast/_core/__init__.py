"""Cython bindings of the C core: one thin module per kernel, no validation. Use `manifast.kernels`."""
