"""Random proposals of basis functions: fresh ones, children and siblings of active ones, and oblique ramps.

A fresh function is centred on a row and uses one, two, three or many features, at random scales. If a feature
has several columns (categories, or a number and its warp), the function uses one of them.

A child is an active function with perturbed centre and scales, and possibly one feature dropped or added. A
sibling uses the features of an active function, at about its scales, on another row: where one function of
some features is useful, others are, too.

An oblique ramp uses many features, in the direction in which a nearly linear ramp gains most: S⁻¹Q in the
notation of `isbor.search.adaptive.gains`. Random directions would not find it. It uses all columns of a
categorical feature, unless they are so many that the best direction would fit noise.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows
from isbor.model.basis import Functions, adaptive_cost
from isbor.search.adaptive.gains import Directions

__all__ = ["Proposals"]

_SIZES = (1, 2, 3, 12)  # number of features of a fresh function, if there are as many
_SHARES = (0.35, 0.3, 0.2, 0.15)  # their probabilities
_RAMPS = 0.3  # share of ramps among fresh functions
_OBLIQUE_SIZES = (3, 6, 12, 1000)  # number of features of an oblique ramp, if there are as many
_ROWS_PER_FEATURE = 50  # of an oblique ramp, at least


@dataclass(frozen=True, slots=True)
class Proposals:
    """Draws functions at random."""

    random: np.random.Generator
    feature: IntArray  # (d,) the feature of each column
    column_costs: FloatArray  # (d,) see `isbor.model.basis.column_costs`

    def fresh(self, rows: TrainingRows, count: int) -> Functions:
        """Return functions centred on random rows, of a few features each."""
        random = self.random
        columns = self._one_column_each(rows, count)
        d = rows.X.shape[1]
        sizes = random.choice(_SIZES, size=count, p=_SHARES)
        keys = np.where(columns, random.random((count, d)), 2.0)
        used = columns & (np.argsort(np.argsort(keys, axis=1), axis=1) < sizes[:, None])
        k = np.maximum(used.sum(axis=1, keepdims=True), 1)
        ramp = random.random(count) < _RAMPS
        scale = 2.0 ** (random.uniform(-4, 4, (count, 1)) + 0.7 * random.normal(size=(count, d))) / k
        tilt = random.normal(size=(count, d)) * used
        length = np.sqrt(np.einsum("ij,ij->i", tilt, tilt))[:, None]
        tilt *= 2.0 ** random.uniform(-5, 3, (count, 1)) / np.where(length > 0, length, 1.0)
        return self._functions(
            rows, random.integers(0, len(rows), count), used, np.where(ramp[:, None], tilt, scale), ramp
        )

    def oblique(self, rows: TrainingRows, count: int, directions: Directions) -> Functions:
        """Return ramps along the best directions of several features, drawn by their strength."""
        random = self.random
        starts = self._starts
        max_features = len(rows) // _ROWS_PER_FEATURE
        binary = self.column_costs < 1.0
        columns = self._one_column_each(rows, count) | binary
        strength = np.maximum.reduceat(directions.strength, starts)
        # The features with the lowest keys are a random sample without replacement, by strength.
        keys = random.exponential(size=(count, len(starts))) / (1.0 + strength)
        # A feature with too many 0/1 columns, each with a slope to be fitted, is not used.
        keys[:, np.add.reduceat(binary, starts) > max(max_features, 2)] = np.inf
        sizes = np.minimum(random.choice(_OBLIQUE_SIZES, size=count), max_features)
        chosen = (np.argsort(np.argsort(keys, axis=1), axis=1) < sizes[:, None]) & (keys < np.inf)
        widths = np.diff(np.append(starts, len(self.feature)))
        used = columns & np.repeat(chosen, widths, axis=1) & rows.varying
        tilt = directions.best(used) * 2.0 ** random.uniform(-5, 1, (count, 1))
        used &= tilt != 0.0
        return self._functions(
            rows, random.integers(0, len(rows), count), used, tilt, np.ones(count, dtype=np.bool_)
        )

    def children(self, rows: TrainingRows, parents: Functions, count: int) -> Functions:
        """Return perturbed copies of random `parents`."""
        random = self.random
        if not len(parents):
            return parents
        n, d = count, rows.X.shape[1]
        parents = parents.take(random.integers(0, len(parents), n))
        used, ramp = parents.metric != 0.0, parents.ramp[:, None]
        reach = random.choice([0.15, 0.5, 1.0], size=(n, 1))
        width = np.minimum(1.0 / np.sqrt(2.0 * np.where(used & ~ramp, parents.metric, 0.5)), 2.0)
        centres = parents.centres + used * reach * 0.7 * width * random.normal(size=(n, d))
        metric = np.where(
            ramp,
            parents.metric * (1.0 + 0.5 * reach * random.normal(size=(n, d))),
            parents.metric * 2.0 ** (1.5 * reach * random.normal(size=(n, d))),
        )
        # Drop a feature with probability 0.2, else add one with probability 0.3.
        allowed = self._one_column_each(rows, n)
        added = np.argmax(np.where(allowed, random.random((n, d)), -1.0), axis=1)
        dropped = np.argmax(np.where(used, random.random((n, d)), -1.0), axis=1)
        draw, row = random.random(n), np.arange(n)
        drop = row[(draw < 0.2) & (used.sum(axis=1) > 1)]
        add = row[(draw >= 0.2) & (draw < 0.5) & ~used[row, added]]
        metric[drop, dropped[drop]] = 0.0
        donor = random.integers(0, len(rows), n)
        centres[add, added[add]] = rows.X[donor[add], added[add]]
        new_tilt = random.normal(size=n) * 2.0 ** random.uniform(-2, 1, n)
        new_scale = 2.0 ** random.uniform(-5, 2, n)
        metric[add, added[add]] = np.where(parents.ramp, new_tilt, new_scale)[add]
        return Functions(
            centres,
            metric,
            parents.ramp,
            np.zeros(n),
            parents.origin,
            adaptive_cost(metric, self.column_costs),
        )

    def siblings(self, rows: TrainingRows, parents: Functions, count: int) -> Functions:
        """Return functions of the features of random `parents`, centred on random rows."""
        random = self.random
        if not len(parents):
            return parents
        parents = parents.take(random.integers(0, len(parents), count))
        octaves = random.normal(size=(count, 1)) + 0.5 * random.normal(size=parents.metric.shape)
        metric = parents.metric * 2.0 ** np.where(parents.ramp[:, None], 0.5 * octaves, octaves)
        origin = random.integers(0, len(rows), count)
        return self._functions(rows, origin, metric != 0.0, metric, parents.ramp)

    def _one_column_each(self, rows: TrainingRows, count: int) -> NDArray[np.bool_]:
        """Return one random column of each feature for each function, (count, d), no constant ones."""
        varying = rows.varying
        keys = np.where(varying, self.random.random((count, len(varying))), -1.0)
        starts = self._starts
        widths = np.diff(np.append(starts, len(varying)))
        best = np.repeat(np.maximum.reduceat(keys, starts, axis=1), widths, axis=1)
        allowed: NDArray[np.bool_] = (keys == best) & varying
        return allowed

    @property
    def _starts(self) -> IntArray:
        """The first column of each feature."""
        return np.flatnonzero(np.concatenate([[True], np.diff(self.feature) != 0]))

    def _functions(
        self,
        rows: TrainingRows,
        origin: IntArray,
        used: NDArray[np.bool_],
        metric: FloatArray,
        ramp: NDArray[np.bool_],
    ) -> Functions:
        metric = np.where(used, metric, 0.0)
        return Functions(
            rows.X[origin],
            metric,
            ramp,
            np.zeros(len(origin)),
            origin,
            adaptive_cost(metric, self.column_costs),
        )
