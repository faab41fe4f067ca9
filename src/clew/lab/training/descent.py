"""Minimise a smooth function of a few hundred parameters: limited-memory BFGS (Liu & Nocedal 1989)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Loss = Callable[[Doubles], tuple[float, Doubles]]
"""Maps parameters to value and gradient."""
REMEMBERED = 10
"""Number of previous steps used to estimate the curvature."""
SLOPE, HALVINGS = 1e-4, 40
"""Required share of the predicted decrease, and maximum number of step halvings."""


def minimize(loss: Loss, start: Doubles, *, rounds: int = 2000, tolerance: float = 1e-10) -> Doubles:
    """Minimise the loss from `start`. Stop when a step reduces the value by less than `tolerance`, relative to it."""
    place = np.array(start, dtype=np.float64)
    value, gradient = loss(place)
    steps: deque[tuple[Doubles, Doubles]] = deque(maxlen=REMEMBERED)
    for _ in range(rounds):
        direction = -_times_inverse_curvature(gradient, steps)
        slope = float(gradient @ direction)
        if slope >= 0:  # rounding errors in the stored steps
            steps.clear()
            direction, slope = -gradient, -float(gradient @ gradient)
        length = 1.0 if steps else min(1.0, 1.0 / max(float(np.abs(gradient).sum()), 1e-12))
        for _ in range(HALVINGS):
            reached = place + length * direction
            new_value, new_gradient = loss(reached)
            if new_value <= value + SLOPE * length * slope:
                break
            length /= 2
        else:
            return place
        move, turn = reached - place, new_gradient - gradient
        if float(move @ turn) > 1e-12 * float(turn @ turn):
            steps.append((move, turn))
        gained = value - new_value
        place, value, gradient = reached, new_value, new_gradient
        if gained <= tolerance * max(abs(value), abs(value + gained), 1.0):
            return place
    return place


def _times_inverse_curvature(gradient: Doubles, steps: deque[tuple[Doubles, Doubles]]) -> Doubles:
    """Compute the two loops of Nocedal (1980): the gradient times the estimated inverse Hessian."""
    result = gradient.copy()
    shares = []
    for move, turn in reversed(steps):
        share = float(move @ result) / float(move @ turn)
        shares.append(share)
        result -= share * turn
    if steps:
        move, turn = steps[-1]
        result *= float(move @ turn) / float(turn @ turn)
    for (move, turn), share in zip(steps, reversed(shares), strict=True):
        result += (share - float(turn @ result) / float(move @ turn)) * move
    return result
