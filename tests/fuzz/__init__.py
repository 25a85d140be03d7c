"""Random calls of every public entry, each judged: see `python -m tests.fuzz --help`.

__main__    the campaign: children with limits, what became of every call, one line that repeats a failure
child       runs calls one after another and judges them
judge       what is a failure
entries     the table of entries: how to draw arguments, and the oracle where there is a plain one
arrays      arrays of every shape, dtype, memory layout and size of numbers
parameters  legal and illegal values for parameters, by name
"""
