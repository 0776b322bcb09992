"""Tables that are larger than memory: files, queries, arrays and functions, read block by block.

`open_table` opens them for a fit, `map_blocks` predicts them::

    table = sources.open_table("ratings/*.parquet", target="stars")
    for probabilities in sources.map_blocks(model.predict_proba, table):
        ...

Files are read with pyarrow, which ``pip install "isbor[files]"`` installs.
"""

from isbor.sources.csv_format import CsvFormat, detect_csv_format
from isbor.sources.errors import SourceError
from isbor.sources.mapping import map_blocks
from isbor.sources.opening import column_names, open_table

__all__ = [
    "CsvFormat",
    "SourceError",
    "column_names",
    "detect_csv_format",
    "map_blocks",
    "open_table",
]
