"""Inner functions of compiled code, as tests can call them."""

from isbor._core.compiled import compiled, compiled_sums


def callable_from_python(function):
    """Return a function for compiled functions, compiled in the same way for Python."""
    is_sum = "fastmath" in function.dispatcher.targetoptions
    return (compiled_sums if is_sum else compiled)(function.__wrapped__)
