"""Compiled leaf regressions of trees that are monotone in some features.

Two rows that differ in one feature alone part at a split of that feature, or never. So a tree is monotone in a feature
if every leaf is, and if at each split of the feature no leaf of the lower side exceeds one of the upper side where rows
that differ in this feature alone can reach both. The leaves of a tree are fitted in three steps:

1. In each leaf the slope of a constrained feature keeps its sign at both ends of the leaf's range, and so within.
2. Beside it stands the leaf's mean, held between bounds that each split of a constrained feature hands down: the middle
   of the means of its two sides (the "basic" method of LightGBM). Constant leaves are these.
3. From the bottom up, where leaves of the two sides of a split of a constrained feature are out of order, all leaves
   below it are moved towards their means by one share, and the two sides apart by a constant: the share and the
   constant that cost least of what the regressions have gained. Neither undoes the order below: leaves in order are a
   convex set, in which the means lie.
"""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.entry import BOOL, FLOAT, INT, INT32S, INT64S, MATRIX, NODES, VECTOR, entry_point, written
from boostbp.trees.kernels.leaf_steps import boxes, least_step, reach_of
from boostbp.trees.kernels.records import INV_SCALE, LOWER, UPPER, internal, largest
from boostbp.trees.kernels.solving import solve_leaf

FREE, FLAT_END, ABSENT = 0, 1, 2  # a column of a leaf: as it is; with a slope of 0 at one end of its range; left out
SHARES = 16  # steps in which the share is looked for by which leaves move towards their means
PAIRS = 1024  # of leaves, that are compared at a split; beyond it, all of a side together: a tree may have 2^17 leaves


@internal
def _leave_out(gram, moment, p, term):
    """Take a term out of normal equations, which give it a weight of 0 then."""
    for i in range(p):
        gram[term * p + i] = 0.0
        gram[i * p + term] = 0.0
    moment[term] = 0.0


@internal
def _join(gram, moment, p, term, other, ratio):
    """Put ``term + ratio * other`` in the place of a term, and take the other out."""
    for i in range(p):
        gram[term * p + i] += ratio * gram[other * p + i]
    for i in range(p):
        gram[i * p + term] += ratio * gram[i * p + other]
    moment[term] += ratio * moment[other]
    _leave_out(gram, moment, p, other)


@internal
def _restricts(j, k, degree, w, sign, scaling, state, ratio, gram, moment, p):
    """Restrict column `j` of a leaf if its slope has the wrong sign somewhere; returns whether it had.

    A slope, ``w_j + 2 u w_jj``, is between those at the ends of the range. Where one end alone is wrong, the parabola
    gets its top there: ``u + ratio u^2``.
    """
    linear, square = sign * w[1 + j], sign * w[1 + k + j] if degree == 2 else 0.0
    lower, upper = scaling[LOWER], scaling[UPPER]
    at_lower, at_upper = linear + 2.0 * square * lower, linear + 2.0 * square * upper
    if state[j] == ABSENT or (at_lower >= 0.0 and at_upper >= 0.0):
        return False
    if state[j] == FLAT_END and linear >= 0.0:  # the slope at that end is 0 but for rounding
        return False
    if degree == 2 and state[j] == FREE and max(at_lower, at_upper) > 0.0 and lower < 0.0 < upper:
        state[j], ratio[j] = FLAT_END, -0.5 / (lower if at_lower < 0.0 else upper)
        _join(gram, moment, p, 1 + j, 1 + k + j, ratio[j])
        return True
    state[j] = ABSENT
    _leave_out(gram, moment, p, 1 + j)
    if degree == 2:
        _leave_out(gram, moment, p, 1 + k + j)
    return True


@internal
def solve_signed(gram, g0, w, path, degree, column, scaling, sign, penalty, penalize_constant, a, matrix, moment):
    """Turn the moments of one leaf, `w`, into ridge weights whose slopes have no wrong sign within the leaf's range.

    Columns are restricted until none is wrong: each round restricts one more at least. `a`, `matrix` and `moment` are
    scratch for as many terms; the last becomes the moments of the terms as restricted.
    """
    p = len(w)
    k = (p - 1) // degree
    state, ratio = np.zeros(k, np.int64), np.zeros(k)
    for i in range(p):
        moment[i] = w[i]
        for j in range(i + 1):
            matrix[i * p + j] = matrix[j * p + i] = gram[g0 + i * p + j]
    begin, n_outputs = np.int64(0), np.int64(1)
    wrong = True
    while wrong:
        for i in range(p):
            w[i] = moment[i]
        solve_leaf(matrix, begin, w, begin, p, n_outputs, penalty, penalize_constant, 1.0, a)
        for j in range(k):
            if state[j] == FLAT_END:
                w[1 + k + j] = ratio[j] * w[1 + j]
        wrong = False
        for j in range(k):
            way = sign[column[path + j]]
            if way != 0 and scaling[path + j, INV_SCALE] != 0.0:
                wrong |= _restricts(j, k, degree, w, way, scaling[path + j], state, ratio, matrix, moment, p)


@internal
def _numbered(nodes, first, order, parent, place, span):
    """Write the splits of a tree, each before those below it; which is above each leaf and split; where leaves lie.

    order : (splits,)
    parent : (leaves + splits,), -1 above the root
    place : (leaves,), the leaves from left to right
    span : (splits, 3), the places where the leaves of the left side begin, those of the right side begin, and all end
    """
    n_leaves = len(place)
    todo, rank = np.empty(2 * n_leaves, np.int64), np.empty(n_leaves, np.int64)
    n_todo, n_ordered, n_placed = 1, 0, 0
    todo[0] = 0 if n_leaves > 1 else -1
    parent[n_leaves if n_leaves > 1 else 0] = -1
    while n_todo > 0:
        n_todo -= 1
        node = todo[n_todo]
        if node < 0:
            place[n_placed], rank[~node] = ~node, n_placed
            n_placed += 1
            continue
        order[n_ordered] = node
        n_ordered += 1
        left, right = np.int64(nodes.left[first + node]), np.int64(nodes.right[first + node])
        for child in (right, left):  # the left one is next
            parent[~child if child < 0 else n_leaves + child] = node
            todo[n_todo] = child
            n_todo += 1
    for i in range(len(order) - 1, -1, -1):
        node = order[i]
        left, right = np.int64(nodes.left[first + node]), np.int64(nodes.right[first + node])
        span[node, 0] = rank[~left] if left < 0 else span[left, 0]
        span[node, 1] = rank[~right] if right < 0 else span[right, 0]
        span[node, 2] = rank[~right] + 1 if right < 0 else span[right, 2]


@internal
def _sign_of(nodes, i, sign):
    return sign[nodes.feature[i]] if nodes.cat_start[i] < 0 else np.int64(0)


@internal
def _mean(mass, moment, penalty):
    return moment / (mass + penalty) if mass + penalty > 0.0 else 0.0


@internal
def _order_means(nodes, first, order, place, span, sign, mass, penalty, mean):
    """Turn the moments of all leaves, `mean`, into means in the right order at each split of a constrained feature."""
    n_leaves = len(place)
    total = np.zeros((n_leaves + 1, 2))  # mass and moment of the leaves up to each place
    bounds = np.empty((n_leaves, 2))
    for i in range(n_leaves):
        total[i + 1, 0] = total[i, 0] + mass[place[i]]
        total[i + 1, 1] = total[i, 1] + mean[place[i]]
        bounds[i, 0], bounds[i, 1] = -np.inf, np.inf
    for node in order:
        way = _sign_of(nodes, first + node, sign)
        if way == 0:
            continue
        begin, middle, end = span[node]
        left = _mean(total[middle, 0] - total[begin, 0], total[middle, 1] - total[begin, 1], penalty)
        right = _mean(total[end, 0] - total[middle, 0], total[end, 1] - total[middle, 1], penalty)
        lower, upper = bounds[begin]  # those of all leaves below, so far
        between = min(max(0.5 * (left + right), lower), upper)
        for i in range(begin, end):
            bounds[i, 1 if (i < middle) == (way > 0) else 0] = between
    for i in range(n_leaves):
        leaf = place[i]
        mean[leaf] = min(max(_mean(mass[leaf], mean[leaf], penalty), bounds[i, 0]), bounds[i, 1])


@internal
def _step_of_sides(place, begin, middle, end, way, reach, mean, step):
    """Write bounds of the least step from any leaf of the lower side to any of the upper one: of values, of means."""
    highest = highest_mean = -np.inf
    lowest = lowest_mean = np.inf
    for i in range(begin, end):
        leaf = place[i]
        if (i < middle) == (way > 0):
            highest, highest_mean = max(highest, reach[leaf, 1]), max(highest_mean, mean[leaf])
        else:
            lowest, lowest_mean = min(lowest, reach[leaf, 0]), min(lowest_mean, mean[leaf])
    step[0], step[1] = lowest - highest, lowest_mean - highest_mean


@internal
def _cheapest(steps, n, loss, mass):
    """The share by which leaves move to their means, and the distance their sides move apart, that cost least.

    steps : (at least n, 2), of `n` pairs of leaves the step between them: as they are, and of their means
    loss : twice what the whole share costs; it grows with the square of the share
    mass : twice what a distance of 1 costs; it grows with the square of the distance
    """
    best = best_share = best_distance = np.inf
    for k in range(SHARES + 1):
        share = k / SHARES
        distance = 0.0
        for i in range(n):
            distance = max(distance, -(1.0 - share) * steps[i, 0] - share * steps[i, 1])
        cost = share * share * loss + distance * distance * mass
        if cost < best:
            best, best_share, best_distance = cost, share, distance
    return best_share, best_distance


@entry_point(NODES, INT, INT64S, INT32S, INT32S, INT, MATRIX, VECTOR, written("f8", 1), FLOAT, BOOL, FLOAT)
def solve_monotone(
    nodes, first, sign, path_start, column, degree, scaling, gram, weight, penalty, penalize_constant, scale
):
    """Write weights of each leaf of a tree that is monotone in some features over the moments in `weight`.

    Parameters
    ----------
    nodes, first : splits, and the first of the tree
    sign : (features,) int64
        1 for a feature in which the tree rises, -1 for one in which it falls, else 0.
    path_start, column, degree, gram, weight, penalty, penalize_constant, scale : as for `solve_leaves`, of one output
        Columns are the features; `gram` is of terms that are centred and scaled.
    scaling : (path columns, 4)
    """
    n_leaves = len(path_start) - 1
    n_splits = n_leaves - 1
    order, place, span = np.empty(n_splits, np.int64), np.empty(n_leaves, np.int64), np.empty((n_splits, 3), np.int64)
    parent = np.empty(n_leaves + n_splits, np.int64)
    _numbered(nodes, first, order, parent, place, span)
    mass, mean = (
        np.empty(n_leaves),
        np.empty(n_leaves),
    )  # of each leaf: sum of hessians; first the moment, then the mean
    weight_start = np.empty(n_leaves + 1, np.int64)
    g0 = w0 = np.int64(0)
    for leaf in range(n_leaves):
        mass[leaf], mean[leaf], weight_start[leaf] = gram[g0], weight[w0], w0
        p = 1 + degree * (path_start[leaf + 1] - path_start[leaf])
        g0 += p * p
        w0 += p
    weight_start[n_leaves] = w0
    _order_means(nodes, first, order, place, span, sign, mass, penalty if penalize_constant else 0.0, mean)
    if len(column) == 0:
        for leaf in range(n_leaves):
            weight[leaf] = scale * mean[leaf]
        return
    most = 1 + degree * largest(path_start)
    a, matrix, moment = np.empty((most, most)), np.empty(most * most), np.empty(most)
    gain, reach = np.empty(n_leaves), np.empty((n_leaves, 2))
    g0 = np.int64(0)
    for leaf in range(n_leaves):
        path, w = np.int64(path_start[leaf]), weight[weight_start[leaf] : weight_start[leaf + 1]]
        gain[leaf] = -mean[leaf] * w[0]
        solve_signed(gram, g0, w, path, degree, column, scaling, sign, penalty, penalize_constant, a, matrix, moment)
        for term in range(len(w)):
            gain[leaf] += w[term] * moment[term]
        gain[leaf] = max(gain[leaf], 0.0)
        reach[leaf, 0], reach[leaf, 1] = reach_of(path, path_start[leaf + 1] - path, degree, scaling, w)
        g0 += len(w) * len(w)
    box, may_miss = np.empty((len(column), 2)), np.empty(len(column), np.bool_)
    boxes(nodes, first, parent, path_start, column, box, may_miss)
    at, steps = np.empty(9), np.empty((PAIRS, 2))  # between leaves that are out of order
    for number in range(n_splits - 1, -1, -1):
        node = order[number]
        way = _sign_of(nodes, first + node, sign)
        if way == 0:
            continue
        begin, middle, end = span[node]
        n = 0
        if (middle - begin) * (end - middle) > PAIRS:
            _step_of_sides(place, begin, middle, end, way, reach, mean, steps[0])
            n = 1 if steps[0, 0] < 0.0 else 0
        else:
            for i in range(begin, middle):
                for j in range(middle, end):
                    lower, upper = (place[i], place[j]) if way > 0 else (place[j], place[i])
                    if reach[lower, 1] <= reach[upper, 0]:
                        continue
                    steps[n, 0] = least_step(
                        nodes.feature[first + node], way > 0, lower, upper, path_start, column, weight_start, degree,
                        scaling, weight, box, may_miss, at,
                    )  # fmt: skip
                    steps[n, 1] = mean[upper] - mean[lower]
                    n += 1 if steps[n, 0] < 0.0 else 0
        if n == 0:
            continue
        loss = mass_left = mass_right = 0.0
        for i in range(begin, end):
            leaf = place[i]
            loss += gain[leaf]
            if i < middle:
                mass_left += mass[leaf]
            else:
                mass_right += mass[leaf]
        # moved apart around their common mean, each side by the share of the other in the mass
        right = mass_left / (mass_left + mass_right) if mass_left + mass_right > 0.0 else 0.5
        share, distance = _cheapest(steps, n, loss, right * mass_right)
        for i in range(begin, end):
            leaf = place[i]
            for term in range(weight_start[leaf], weight_start[leaf + 1]):
                weight[term] *= 1.0 - share
            gain[leaf] *= (1.0 - share) * (1.0 - share)
            step = share * mean[leaf] + way * distance * (right if i >= middle else right - 1.0)
            weight[weight_start[leaf]] += step
            reach[leaf, 0] = (1.0 - share) * reach[leaf, 0] + step
            reach[leaf, 1] = (1.0 - share) * reach[leaf, 1] + step
    for term in range(len(weight)):
        weight[term] *= scale
