"""Random calls of every public entry, each judged: see `python -m tests.fuzz --help`.

__main__      the campaign: children with limits, what became of every call, one line that repeats a failure
child         runs calls one after another and judges them
entries       the table of entries; of_kernels, of_functions, of_models and of_plots draw their arguments and hold
              the oracles
trial, judge  what every call gets, and what is a failure
arrays        arrays of every shape, dtype, memory layout and size of numbers
parameters    legal and illegal values for parameters, by name
"""
