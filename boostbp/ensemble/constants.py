"""Tuned constants of the ensemble, each with where it was measured.

"Journal" is ``docs/research/journal.md``, with the heading under which the figures stand. "Not measured" is a value
that was chosen once and that no experiment has varied.
"""

from __future__ import annotations

# Weights
# The way that the descent from equal weights goes, the sum of the rates of its steps: of each held-out row, and the
# least. Journal, "Weights by as many steps as there are rows": .017 to .2 and 5 to 20. Its first rate, what it grows by
# after each step, and most steps, by which the end of the way is hardly missed, were not varied.
STACKING_WAY_OF_ROW, LEAST_STACKING_WAY = 0.05, 10.0
STACKING_RATE, STACKING_GROWTH, MOST_STACKING_STEPS = 0.5, 1.5, 60
# Least weight that is kept. Journal, "A fit that is good whenever it stops": 0 to .1.
LEAST_WEIGHT = 0.04
# Label smoothing: held-out rows of another class, in rows, that are added to each held-out row of a class.
# Journal, "Networks that seemed better than they are": .25 against 1, .5 and .1.
SMOOTHING_ROWS = 0.25
# Standard errors of the slope of held-out targets on the raw output below which the average is shrunk to the constant.
# Journal, "Weak signals": with and without the rule; the 6 itself was not varied.
WEAK_SIGNAL_T = 6.0
# Least such t-statistic that the shrinkage is computed with, so that a little of the model is left. Not measured.
LEAST_SIGNAL_T = 0.5
# Standard errors of that slope at which the average gets half of its weight, the constant the rest. Not varied.
HALF_WEIGHT_T = 2.0

# Standard errors by which a member's held-out loss must exceed the least one for it to count less in the mean.
# Journal, "Members that missed it"; the 2 itself was not varied.
MEMBER_T = 2.0

# Boosting to the end
# Learning rate. Journal, "A fit that is good whenever it stops" and "Sampled rows and features": .04, .07 and .1.
SHRINKAGE = 0.1
# Rounds between two looks at the held-out loss. Not measured.
PIECE_ROUNDS = 25
# Pieces without a gain after which boosting ends: as many as there were until the last gain, within these bounds.
# Journal, "Shrinkage and patience, once more" and "What a level spends its seconds on": 2 and 3 for all, 2 for some.
LEAST_PATIENCE, PATIENCE_PIECES = 2, 3
# Most pieces, 4,000 rounds. Journal, "Random thresholds": beyond 1,000 rounds .986 of the error.
MAX_PIECES = 160
# Share of what the first piece gains that counts as a gain. Journal, "What helped", the row on pieces of 25 rounds.
LEAST_GAIN_OF_FIRST = 1e-4
# Share of the remaining loss that always counts as a gain. Journal, "Few rows, rows far off, and steps far apart" and
# "Sampled rows and features": .01, .02, .05.
LEAST_GAIN_OF_REST = 0.01

# Many rows; all from the journal, "Many rows"
# Training rows from which on the model is chosen on a sample of them (not varied), and the rows of that sample: 20,000
# and 30,000.
MANY_ROWS, SAMPLE_ROWS = 50_000, 20_000
# Share of the rows that the structures of a piece are grown on there, drawn for each piece, and the least number:
# 10,000 to 50,000 of 90,000, 50,000 and 200,000 of a million.
STRUCTURE_SHARE, LEAST_STRUCTURE_ROWS = 0.2, 50_000
# Rows of each class that such a sample must have: rows of rare events are few in all. Not measured.
LEAST_STRUCTURE_CLASS = 1000
# Work of layers on all rows, in units of the first one, as a multiple of that of the level, and the share of `max_time`
# after the first layer that the sample may take. The first: 4 and 6 units at quality 3; the second was not varied.
ALL_ROWS_WORK, SAMPLE_TIME = 0.8, 0.3
# Layers on all rows, one after the other, that lower the loss of the sum by less than `LEAST_PROMISE` before it ends.
# Not varied.
PATIENCE_ALL_ROWS = 2

# Settings of candidates; "pools" are the tables in the journal, "What the sum is made of" and "Random thresholds"
# Share of the rows and of the features for each tree where they are sampled, and the number of features from which on.
# Journal, "Sampled rows and features": rows .4, .6, .7, .8, 1; features .3, .5, .7, 1; the number 4, 10 and 15.
SAMPLED_ROWS, SAMPLED_FEATURES, FEWEST_FEATURES_SAMPLED = 0.6, 0.5, 10
# Training rows from which on the first layer takes the best thresholds, as do those over an additive base and on
# directions. Journal, "Random thresholds, or the best": 3,000 to 31,000 rows.
BEST_THRESHOLDS_ROWS = 6000
# By how much deep trees are deeper. The same place: 0 and 2.
DEEPER_BY = 2
# Times the rows per leaf in candidates with large leaves. Pools: 3 times against a third.
LARGE_LEAVES_FACTOR = 3
# Depth, leaves and ridge penalty of trees with constant leaves. "Sampled rows and features": 24, 48, 96 leaves. The
# depth and the penalty were not varied.
CONSTANT_LEAVES_DEPTH, CONSTANT_LEAVES_MAX_LEAVES, CONSTANT_LEAVES_PENALTY = 8, 24, 1.0
MANY_LEAVES, MANY_LEAVES_DEPTH = 96, 10
# Most numeric features for a base of smooth functions; with more, each has too few knots. Not measured.
ADDITIVE_MAX_FEATURES = 200
# Ridge penalty of linear hidden units, which follow their gradients faster than under a cross-validated penalty.
# Journal, "What did not": 1 against cross-validation in networks alone.
LINEAR_NETWORK_PENALTY = 1.0
# Times the units in the linear network. Journal, "Gradients that turned to noise": 16 units and 32 with light penalty.
LINEAR_NETWORK_WIDTH = 2

# Classes from which on the trees of a round share a structure, and networks are left to high qualities. Journal, "One
# structure for all classes" and "Where networks are tried": with and without; the number was not varied.
SEVERAL_CLASSES = 3

# Directions of the gradient outer product: how many, and the most rows whose Jacobians count. Not varied.
DIRECTIONS, DIRECTIONS_ROWS = 8, 2000
# Features of whose pairs there are sums and differences beside them. Journal, "Sums and differences": 0, 3, 4 and 6.
DIRECTIONS_PAIRED = 4

# Race; all from the journal, "A fit that is good whenever it stops"
# Layers that are boosted to their end before all others: 1 and 2.
FIRST_LAYERS = 2
# Pieces after which the first layer of quality 1 may give way to another one, and the share of its loss by which that
# must be ahead. Journal, "The better of two first layers": 1 and 2; 0 and .02.
FIRST_LAYER_PIECES, FIRST_LAYER_LEAD = 1, 0.02
# Pieces of a trial: 2 and 4. Pieces between two decisions: 1 and 2. Pieces ahead that a promise looks: not varied.
TRIAL_PIECES, RACE_PIECES, PIECES_AHEAD = 4, 2, 4
# Share of the loss that must be promised for a layer to go on: 1e-3 and 1e-4.
LEAST_PROMISE = 1e-3
# Layers that go on between two decisions, whatever the threads: 1 and 3.
WAVE = 3
# First epoch at which a network is looked at: 4 and 8. The following looks are at twice the epoch.
FIRST_LOOK = 8
# How far above the error of the layers' sum that of a network may be, at the first look and later, and how much it must
# fall between two looks: .15, .5 and 1 (there "Networks far off at first"); .15 and .3; .01, .03 and .06.
FIRST_NEAR, NEAR, LEAST_FALL = 1.0, 0.15, 0.03
# Share of the loss by which leaves with slopes must beat constant ones in the rounds of a trial for networks to be
# trained. Journal, "Where networks are tried": smooth targets have .12 and more, most tables less than .07.
LEAST_BEND = 0.1
# Shares of the work of a fit by which the last trials begin, the race of layers ends where networks follow, networks
# end, and output layers on networks begin. The first two: .4 and .25, .5 and .4; the others were not varied.
TRIALS_WORK, LAYERS_WORK, NETWORKS_WORK, OUTPUTS_WORK = 0.25, 0.4, 0.85, 0.9

# Training in parallel
# Most candidates at a time, and the rows from which on one at a time is trained with all threads: few rows keep few
# threads busy, as much of such a fit is Python. Journal, "Final output layers": two threads, 64 to 59 seconds; the
# limits themselves were not varied.
MAX_PARALLEL, MAX_PARALLEL_ROWS = 3, 20_000
