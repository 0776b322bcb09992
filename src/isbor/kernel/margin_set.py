r"""The variables on the margin of an incremental support vector machine, and their response to another one.

The set stores the bordered kernel matrix of its members and its inverse,

.. math:: M = \begin{pmatrix} 0 & E^\top \\ E & K_{SS} \end{pmatrix},

where E indicates the threshold of each member. When a variable with the column q in M and the kernel value κ
with itself joins,

.. math::
    M^{-1} \leftarrow \begin{pmatrix} M^{-1} & 0 \\ 0 & 0 \end{pmatrix}
    + \frac1\rho \begin{pmatrix} M^{-1}q \\ -1 \end{pmatrix} \begin{pmatrix} M^{-1}q \\ -1 \end{pmatrix}^\top,
    \qquad \rho = \kappa - q^\top M^{-1} q ,

and when it leaves, the reverse. ρ is its Schur complement; it is zero if the variable depends linearly on the
members.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from isbor._core.types import FloatArray, IntArray

__all__ = ["MarginSet", "Reaction"]

_EPS = float(np.finfo(float).eps)
_DEPENDENT = 1e-12  # a Schur complement below this share of the kernel's diagonal counts as zero
_REFINEMENTS = 4  # of a solution, before the inverse is recomputed


@dataclass(frozen=True, slots=True)
class Reaction:
    """The response of the bordered system to a change of one variable."""

    column: FloatArray  # (J + m,) column of the variable
    solution: FloatArray  # (J + m,) matrix⁻¹ · column: -db and dα of the members if the variable falls by 1
    schur: float  # ρ, the change of the variable's g if it rises by 1
    dependent: bool  # whether ρ is zero up to rounding


class MarginSet:
    """The variables on the margin, and the inverse of their bordered kernel matrix.

    The matrix has one slot for each threshold, then one for each member. The slot of a threshold without
    members is decoupled: 1 on the diagonal, 0 elsewhere.
    """

    def __init__(self, n_thresholds: int) -> None:
        self.n_thresholds = n_thresholds
        self.size = 0
        self.count = np.zeros(n_thresholds, np.intp)  # number of members of each threshold
        self._row = np.zeros(0, np.intp)
        self._threshold = np.zeros(0, np.intp)
        self._kernel = np.zeros((0, 0))
        self._matrix = np.eye(n_thresholds)
        self._inverse = np.eye(n_thresholds)

    @classmethod
    def restore(
        cls, n_thresholds: int, row: IntArray, threshold: IntArray, inverse: FloatArray, gram: FloatArray
    ) -> Self:
        """Return the set with these members; `gram` is the kernel matrix of all rows so far."""
        restored = cls(n_thresholds)
        restored._reserve(len(row), len(gram))
        restored.size = size = len(row)
        restored.count += np.bincount(threshold, minlength=n_thresholds)
        restored._row[:size], restored._threshold[:size] = row, threshold
        restored._kernel[:size, : len(gram)] = gram[row]
        matrix, members = restored.matrix, np.arange(n_thresholds, n_thresholds + size)
        matrix[np.ix_(members, members)] = gram[np.ix_(row, row)]
        matrix[members, threshold] = matrix[threshold, members] = 1.0
        matrix[np.diag_indices(n_thresholds)] = restored.count == 0
        restored.inverse[:] = inverse
        return restored

    @property
    def row(self) -> IntArray:
        """Rows of the members, (m,)."""
        return self._row[: self.size]

    @property
    def threshold(self) -> IntArray:
        """Thresholds of the members, (m,)."""
        return self._threshold[: self.size]

    @property
    def number(self) -> IntArray:
        """Flat indices of the members among all variables, (m,)."""
        return self.row * self.n_thresholds + self.threshold

    @property
    def matrix(self) -> FloatArray:
        """The bordered matrix, (J + m, J + m)."""
        return self._matrix[: self.n_thresholds + self.size, : self.n_thresholds + self.size]

    @property
    def inverse(self) -> FloatArray:
        """The inverse of the bordered matrix."""
        return self._inverse[: self.n_thresholds + self.size, : self.n_thresholds + self.size]

    def kernel(self, n_rows: int) -> FloatArray:
        """Return the kernel between members and rows, (m, n)."""
        return self._kernel[: self.size, :n_rows]

    def see_row(self, row: int, kernel: FloatArray) -> None:
        """Store the kernel between the members and a new row, given that of the row with all rows so far."""
        self._reserve(self.size, row + 1)
        self._kernel[: self.size, row] = kernel[self.row]

    def column(self, row_kernel: FloatArray, threshold: int) -> FloatArray:
        """Return the column of a variable in the bordered matrix, (J + m,)."""
        column = np.zeros(self.n_thresholds + self.size)
        column[threshold] = self.count[threshold] > 0
        column[self.n_thresholds :] = row_kernel[self.row]
        return column

    def reaction(self, row: int, threshold: int, row_kernel: FloatArray, negligible: float) -> Reaction:
        """Return the reaction of the members to a variable, given its kernel with all rows so far.

        A Schur complement that is at most `negligible`, or a rounding error, counts as zero. The first member
        of a threshold never depends on others.
        """
        column, own = self.column(row_kernel, threshold), float(row_kernel[row])
        solution = self.solve(column)
        schur = own - float(column @ solution)
        # ρ is the squared length of a difference of vectors, whose own squared lengths are rounded.
        unit = own + float(np.diagonal(self.matrix)[self.n_thresholds :] @ solution[self.n_thresholds :] ** 2)
        dependent = self.count[threshold] > 0 and schur <= max(_DEPENDENT * unit, negligible)
        return Reaction(column, solution, schur, bool(dependent))

    def solve(self, right: FloatArray) -> FloatArray:
        """Return matrix⁻¹ · right, refined until the residual is at the level of rounding."""
        matrix = self.matrix
        largest = float(np.diagonal(matrix).max(initial=1.0))
        for fresh in (False, True):
            if fresh:
                self._invert()
            solution = self.inverse @ right
            for _ in range(_REFINEMENTS):
                residual = right - matrix @ solution
                unit = right @ right + len(right) * largest**2 * (solution @ solution)
                if residual @ residual <= (8.0 * _EPS) ** 2 * unit:
                    return solution
                solution += self.inverse @ residual
        return solution

    def add(self, row: int, threshold: int, row_kernel: FloatArray, reaction: Reaction) -> None:
        """Add a variable that does not depend on the members; `reaction` is that of the members to it."""
        column, solution, schur = reaction.column, reaction.solution, reaction.schur
        first = self.count[threshold] == 0
        end = self.n_thresholds + self.size
        self._reserve(self.size + 1, len(row_kernel))
        self._row[self.size], self._threshold[self.size] = row, threshold
        self._kernel[self.size, : len(row_kernel)] = row_kernel
        self.size += 1
        self.count[threshold] += 1
        matrix, inverse = self.matrix, self.inverse
        matrix[end, :end] = matrix[:end, end] = column
        matrix[end, end] = row_kernel[row]
        if first:  # the slot of the threshold is coupled as well: two rows and columns change
            matrix[threshold, threshold] = 0.0
            matrix[threshold, end] = matrix[end, threshold] = 1.0
            inverse[end, :] = inverse[:, end] = 0.0
            inverse[threshold, :end] = inverse[:end, threshold] = -solution
            inverse[threshold, threshold] = -schur
            inverse[threshold, end] = inverse[end, threshold] = 1.0
        else:
            scaled = solution / schur
            inverse[:end, :end] += np.multiply.outer(solution, scaled)
            inverse[end, :end] = inverse[:end, end] = -scaled
            inverse[end, end] = 1.0 / schur

    def remove(self, position: int) -> None:
        """Remove the member at a position; the last member takes its place."""
        threshold = int(self._threshold[position])
        slot, last = self.n_thresholds + position, self.n_thresholds + self.size - 1
        matrix, inverse = self.matrix, self.inverse
        if self.count[threshold] == 1:
            for square in (matrix, inverse):
                square[threshold, :] = square[:, threshold] = 0.0
                square[threshold, threshold] = 1.0
        else:
            column = inverse[:, slot].copy()
            inverse -= np.multiply.outer(column, column / column[slot])
        for square in (matrix, inverse):
            square[slot, :] = square[last, :]
            square[:, slot] = square[:, last]
        for members in (self._row, self._threshold, self._kernel):
            members[position] = members[self.size - 1]
        self.count[threshold] -= 1
        self.size -= 1

    def _invert(self) -> None:
        inverse = np.linalg.inv(self.matrix)
        self.inverse[:] = 0.5 * (inverse + inverse.T)

    def _reserve(self, size: int, n_rows: int) -> None:
        """Allocate space for `size` members and `n_rows` rows."""
        old_size, old_rows = self._kernel.shape
        if size <= old_size and n_rows <= old_rows:
            return
        new_size = old_size if size <= old_size else max(2 * old_size, size, 16)
        new_rows = old_rows if n_rows <= old_rows else max(2 * old_rows, n_rows, 64)
        self._kernel = np.pad(self._kernel, ((0, new_size - old_size), (0, new_rows - old_rows)))
        if new_size > old_size:
            growth = 0, new_size - old_size
            self._row, self._threshold = (np.pad(old, growth) for old in (self._row, self._threshold))
            self._matrix, self._inverse = (np.pad(old, growth) for old in (self._matrix, self._inverse))
