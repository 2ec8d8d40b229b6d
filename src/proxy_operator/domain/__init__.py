"""What a proxy fleet is: types and rules without clock, task, disk or network.

Everything here is a value or a pure function. `now` is always an argument.
"""
