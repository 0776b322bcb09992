"""Speed and precision of ONNX graphs beside Python: ``python -m benchmarks.onnx_graphs``.

All on one thread, in seconds of the processor. "Single" is the same graph with all its numbers in single
precision, which `isbor.export.to_onnx` does not write.
"""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnxruntime
import pandas as pd

from benchmarks.report import print_machine, print_table, progress
from isbor import GPOR, ISBOR, KDLOR, SVOR
from isbor.export import to_onnx
from tests.problems import shop

TRAINING_ROWS = 1_000
ROWS = 10_000
SEED = 100

MODELS = {
    'ISBOR(basis="mixed")': ISBOR(basis="mixed", n_jobs=1),
    'ISBOR(effort="fast")': ISBOR(effort="fast", n_jobs=1),
    "GPOR()": GPOR(n_jobs=1),
    "SVOR()": SVOR(n_jobs=1),
    "KDLOR()": KDLOR(n_jobs=1),
}


def grades(n, seed):
    """Categories and missing cells."""
    frame, y = shop(n, seed)
    return frame, y


def years(n, seed):
    """Large numbers, on which the score depends with little noise."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"year": rng.uniform(1990, 2025, n), "price": 3e7 + 1e6 * rng.normal(size=n)})
    frame = frame.astype(np.float32).astype(np.float64)
    score = 2.0 * np.sin((frame["year"] - 2000.0) / 2.0) + (frame["price"] - 3e7) / 1e6
    return frame, np.digitize(score + 0.02 * rng.normal(size=n), [-1.0, 0.0, 1.0])


def in_single_precision(path):
    """Return the bytes of a graph that computes in single precision."""
    model = onnx.load(path)
    for constant in model.graph.initializer:
        if constant.data_type == onnx.TensorProto.DOUBLE:
            largest = np.finfo(np.float32).max
            values = np.clip(onnx.numpy_helper.to_array(constant), -largest, largest).astype(np.float32)
            constant.CopyFrom(onnx.numpy_helper.from_array(values, constant.name))
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.i == onnx.TensorProto.DOUBLE:
                attribute.i = onnx.TensorProto.FLOAT
    return model.SerializeToString()


def opened(content):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def inputs_of(session, frame):
    return {
        port.name: frame[[port.name]].astype(object).fillna("").to_numpy()
        if port.type == "tensor(string)"
        else frame[[port.name]].to_numpy("float32" if port.type == "tensor(float)" else "float64")
        for port in session.get_inputs()
    }


def seconds(run, times):
    run()
    begun = time.process_time()
    for _ in range(times):
        run()
    return (time.process_time() - begun) / times


def measured(name, model, rows, path):
    """Return a line of the table."""
    expected = model.predict_proba(rows)
    to_onnx(model, path)
    single = opened(in_single_precision(path))
    to_onnx(model, path, dtype="float64")
    double = opened(str(path))
    of_double, of_single = inputs_of(double, rows), inputs_of(single, rows)
    first = {port: cells[:1] for port, cells in of_double.items()}
    errors = [
        np.abs(session.run(["probabilities"], given)[0] - expected).max()
        for session, given in ((double, of_double), (single, of_single))
    ]
    in_batch = [
        seconds(lambda: double.run(None, of_double), 3),
        seconds(lambda: model.predict_proba(rows), 3),
        seconds(lambda: single.run(None, of_single), 3),
    ]
    alone = [
        seconds(lambda: double.run(None, first), 300),
        seconds(lambda: model.predict_proba(rows[:1]), 100),
    ]
    return (
        name,
        f"{path.stat().st_size / 1000:,.0f} kB",
        *(f"{ROWS / each:,.0f}" for each in in_batch[:2]),
        *(f"{1000 * each:.2f} ms" for each in alone),
        *(f"{error:.0e}" for error in errors),
        f"{ROWS / in_batch[2]:,.0f}",
    )


HEADER = ("", "file", "rows/s", "Python", "one row", "Python", "error", "error, single", "rows/s, single")


def main():
    """Fit each model to each table, and print the tables."""
    with TemporaryDirectory() as folder:
        for table in (grades, years):
            rows, _ = table(ROWS, SEED + 1)
            lines = []
            for name, model in MODELS.items():
                progress(name)
                model.fit(*table(TRAINING_ROWS, SEED))
                lines.append(measured(name, model, rows, Path(folder) / "model.onnx"))
            print_table(table.__doc__, HEADER, lines)
    print_machine()
    print(f"onnxruntime {onnxruntime.__version__}, onnx {onnx.__version__}")


if __name__ == "__main__":
    main()
