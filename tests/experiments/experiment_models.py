"""Models that misbehave, for the tests of experiments."""

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

__all__ = ["Broken", "Crashing", "Diarist", "Greedy", "Majority", "Parent"]


class Majority(ClassifierMixin, BaseEstimator):
    """Predicts the most frequent class, after a while."""

    def __init__(self, seconds=0.0):
        self.seconds = seconds

    def fit(self, X, y):
        time.sleep(self.seconds)
        self.classes_, counts = np.unique(y, return_counts=True)
        self._label = self.classes_[counts.argmax()]
        return self

    def predict(self, X):
        return np.full(len(X), self._label)


class Parent(Majority):
    """Starts a process that never ends, in a session of its own; by default it does not end either."""

    def __init__(self, pid_file="", seconds=3600.0):
        self.pid_file = pid_file
        self.seconds = seconds

    def fit(self, X, y):
        child = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True
        )
        Path(self.pid_file).write_text(f"{os.getpid()} {child.pid}")
        return super().fit(X, y)


class Diarist(Majority):
    """Notes each fit: who started its process, and a digest of its rows."""

    def __init__(self, diary="", seconds=0.2):
        self.diary = diary
        self.seconds = seconds

    def fit(self, X, y):
        rows = hashlib.sha256(np.ascontiguousarray(X).tobytes()).hexdigest()
        with Path(self.diary).open("a") as file:
            file.write(f"{os.getppid()} {rows}\n")
        return super().fit(X, y)


class Greedy(Majority):
    """Takes more and more memory."""

    def fit(self, X, y):
        self._hoard = []
        while True:
            self._hoard.append(np.ones(2_000_000))
            time.sleep(0.01)


class Broken(Majority):
    """Raises an error, with more or less to say."""

    def __init__(self, n_times=1):
        self.n_times = n_times

    def fit(self, X, y):
        raise ZeroDivisionError("nothing can be divided\nby nothing " * self.n_times)


class Crashing(Majority):
    """Takes its process down."""

    def fit(self, X, y):
        os.abort()
