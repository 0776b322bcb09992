"""The order of the examples in the gallery."""

ORDER = (
    "thresholds",
    "decisions",
    "ratings",
    "severity",
    "survey",
    "imbalanced",
    "intervals",
    "costs",
    "explanation",
    "drift",
    "large_table",
    "comparison",
    "basis_functions",
    "saddle",
)


class ReadingOrder:
    """Sort the files of the gallery as they are best read."""

    def __init__(self, src_dir):
        self.src_dir = src_dir

    def __call__(self, filename):
        """Return the place of a file."""
        return ORDER.index(filename.removeprefix("plot_").removesuffix(".py"))
