"""Tuned constants of the ensemble, each with the measurement behind it.

"Journal" is the folder ``docs/research/journal``, followed by the title of the page that has the figures. "Not varied"
marks a value that was chosen once: no experiment has compared it with others.
"""

from __future__ import annotations

# Weights
# Length of the gradient descent from equal weights (the sum of its learning rates): per held-out row, and the minimum.
# Journal, "Weights of candidates": .017 to .2 and 5 to 20.
STACKING_PATH_PER_ROW, MIN_STACKING_PATH = 0.05, 10.0
# First learning rate, growth of the rate after each step, and limit on the steps. Not varied; 60 steps nearly always
# reach the end of the path.
STACKING_RATE, STACKING_GROWTH, MAX_STACKING_STEPS = 0.5, 1.5, 60
# Candidates with less weight are left out. Journal, "A fit that is good whenever it stops": 0 to .1.
MIN_WEIGHT = 0.04
# Label smoothing is equivalent to adding this many rows of other classes to all held-out rows together.
# Journal, "Doubtful networks and weak signals": .25 against 1, .5 and .1.
SMOOTHING_ROWS = 0.25
# The average is shrunk towards the constant if the t-statistic of held-out targets on its output is below this.
# Journal, "Doubtful networks and weak signals": with and without the rule; the 6 itself was not varied.
WEAK_SIGNAL_T = 6.0
# Smaller t-statistics count as this one, so that a little of the model is left. Not varied.
MIN_SIGNAL_T = 0.5
# At this t-statistic the average gets half of the weight and the constant the other half. Not varied.
HALF_WEIGHT_T = 2.0

# A member counts less in the mean if its held-out loss exceeds the lowest one by more standard errors than this.
# Journal, "Work or members"; the 2 itself was not varied.
MEMBER_T = 2.0

# Boosting until the held-out loss stops falling
# Learning rate. Journal, "A fit that is good whenever it stops" and "Sampled rows and features": .04, .07 and .1.
SHRINKAGE = 0.1
# Rounds of a piece. The held-out loss is computed after each piece. Not varied.
PIECE_ROUNDS = 25
# Boosting ends after as many pieces without a gain as there were until the last gain, within these bounds.
# Journal, "A fit that is good whenever it stops" and "What makes fits cheaper": 2 and 3 for all, 2 for some.
MIN_PATIENCE, MAX_PATIENCE = 2, 3
# Limit on the pieces: 4,000 rounds. Journal, "What the sum is made of": rounds after the 1,000th leave .986 of the
# error.
MAX_PIECES = 160
# A fall of the held-out loss counts as a gain if it exceeds this share of the first piece's fall. Journal, "A fit that
# is good whenever it stops".
MIN_GAIN_OF_FIRST = 1e-4
# It also counts if it exceeds this share of the remaining loss. Journal, "A fit that is good whenever it stops": .01,
# .02, .05.
MIN_GAIN_OF_REST = 0.01

# Many rows. All figures are in the journal, "Many rows".
# From this number of training rows on, a sample of them chooses the model (not varied). Rows of the sample: 20,000 and
# 30,000.
MANY_ROWS, MANY_ROWS_SAMPLE = 50_000, 20_000
# Share of many rows on which the structures of a piece are grown, drawn anew for each piece, and the smallest number
# of rows: 10,000 to 50,000 of 90,000, and 50,000 and 200,000 of a million.
STRUCTURE_SHARE, MIN_STRUCTURE_ROWS = 0.2, 50_000
# Each class must have this many rows in such a sample; otherwise structures are grown on all rows. Not varied.
MIN_STRUCTURE_CLASS = 1000
# Work of the layers on all rows, as a multiple of the quality's own limit: 4 and 6 units of the first layer at
# quality 3. Then the share of `max_time` after the first layer that the sample may take: not varied.
ALL_ROWS_WORK, SAMPLE_TIME = 0.8, 0.3
# Boosting on all rows ends after this many layers in a row that lower the loss of the sum by less than `MIN_PROMISE`.
# Not varied.
PATIENCE_ALL_ROWS = 2

# Settings of candidates. "Pools" are the tables in the journal, "What the sum is made of".
# Share of the rows and of the features that a tree of a sampled candidate sees, and the number of features from which
# on features are sampled. Journal, "Sampled rows and features": rows .4, .6, .7, .8, 1; features .3, .5, .7, 1; the
# number 4, 10 and 15.
SAMPLED_ROWS, SAMPLED_FEATURES, MIN_FEATURES_SAMPLED = 0.6, 0.5, 10
# From this number of training rows on, the first layer takes the best thresholds, and so do the layers over an
# additive base and on directions. Journal, "Random thresholds": 3,000 to 31,000 rows.
BEST_THRESHOLDS_ROWS = 6000
# Additional depth of the deep trees. Journal, "Random thresholds": 0 and 2; "The first layers": 2 and 4.
DEEPER_BY = 4
# Factor on the rows per leaf in candidates with large leaves. Pools: 3 against 1/3.
LARGE_LEAVES_FACTOR = 3
# Depth, leaves and ridge penalty of trees with constant leaves. Journal, "Sampled rows and features": 24, 48 and 96
# leaves; "The first layers": others. The depth and the penalty were not varied alone.
CONSTANT_LEAVES_DEPTH, CONSTANT_LEAVES_MAX_LEAVES, CONSTANT_LEAVES_PENALTY = 8, 24, 1.0
# Leaves of a tree, and rows of a leaf, that LightGBM and scikit-learn have by default.
LIBRARY_MAX_LEAVES, LIBRARY_MIN_SAMPLES_LEAF = 31, 20
# Limit on the numeric features of a base of smooth functions. With more, each function has too few knots. Not varied.
ADDITIVE_MAX_FEATURES = 200
# Ridge penalty of linear hidden units. Under it they follow their gradients faster than under a cross-validated one.
# Journal, "Changes of training that did not help": 1 against cross-validation, in networks alone.
LINEAR_NETWORK_PENALTY = 1.0
# Factor on the units of the linear network. Journal, "Gradients that turned to noise": 16 units, and 32 under the
# light penalty.
LINEAR_NETWORK_WIDTH = 2

# From this number of classes on, the trees of a round share one structure, and only high qualities train networks.
# Journal, "Several classes and several labels" and "Where networks are trained": with and without; the number was not
# varied. Several labels of a row always do.
SEVERAL_CLASSES = 3

# Directions of the gradient outer product, and the number of rows that its Jacobians are computed on. Not varied.
LEADING_DIRECTIONS, DIRECTIONS_ROWS = 8, 2000
# With more features than this, at most as many slopes of outputs in rows stand for all of them. Arbitrary.
DIRECTIONS_COLUMNS = 1000
# Features whose pairwise sums and differences join the directions. Journal, "Sums, differences and directions": 0, 3,
# 4 and 6.
DIRECTIONS_PAIRED = 4

# Number of levels from which on the means of a category's levels are hidden units; number of folds, whose rows see
# the means of the other folds; and number of leaves of a tree of means. Journal, "Categories": 120 to 15,000 levels.
# The folds and leaves were not varied.
ENCODED_MIN_LEVELS, ENCODING_FOLDS, ENCODED_LEAVES = 100, 5, 256

# Driver. All figures are in the journal, "A fit that is good whenever it stops", unless another page is named.
# Layers that are boosted to their end before all others: 1 and 2.
FIRST_LAYERS = 2
# At quality 1, a first layer is left out after this many pieces if its loss exceeds the lowest one by more standard
# errors than this. Journal, "The first layers": 1, 2 and 4 pieces; the standard errors .5, 1 and 2; a share of the
# loss instead.
FIRST_LAYER_PIECES, FIRST_LAYER_T = 4, 1.0
# At quality 1 a layer on the directions of another one goes on if its loss after the first piece is lower by this share
# than that of the other. Journal, "What moves quality 1": 0.1, 0.15 and no bound; the first two pieces.
FIRST_PIECE_LEAD = 0.1
# Features that gain nothing: journal, "What moves quality 1". A table has at least `FEW_FEATURES_OF` features. Half
# of them are permuted `PERMUTATIONS` times; the mean loss may rise by `PERMUTED_T` standard errors. A feature stays
# if its gain exceeds `NOISE_GAIN` times the largest one in that half. The layer of these must be better by
# `FEW_FEATURES_T` standard errors. The factor and the last number were varied: 1 to 3, and 0 to 2.
FEW_FEATURES_OF, PERMUTATIONS, PERMUTED_T, NOISE_GAIN, FEW_FEATURES_T = 8, 4, 2.0, 2.0, 1.0
# Pieces of a trial: 2 and 4. Pieces between two decisions: 1 and 2. Pieces over which a layer's last change is
# extrapolated: not varied.
TRIAL_PIECES, RACE_PIECES, PIECES_AHEAD = 4, 2, 4
# A layer goes on if it promises to lower the loss by this share: 1e-3 and 1e-4.
MIN_PROMISE = 1e-3
# Layers that go on between two decisions, whatever the number of threads: 1 and 3.
WAVE = 3
# Epoch of the first look at a network: 4 and 8. Each later look comes at twice the epoch of the one before.
FIRST_LOOK = 8
# A network goes on if its error exceeds that of the layers' sum by at most this share at the first look (.15, .5 and 1;
# see "Where networks are trained") and at later ones (.15 and .3), and if it has fallen by this share since half of its
# epochs (.01, .03 and .06).
FIRST_NEAR, NEAR, MIN_FALL = 1.0, 0.15, 0.03
# Networks are trained if leaves with slopes beat constant leaves by this share of the loss in the rounds of a trial.
# Journal, "Where networks are trained": smooth targets reach .12 or more, most tables less than .07. They are also
# trained if leaves on directions beat those on the features by the second share.
SLOPES_LEAD, DIRECTIONS_LEAD = 0.1, 0.15
# Shares of a fit's work until which trials of layers begin, layers race before networks, networks train, and output
# layers on networks begin. The first two: .4 and .25, and .5 and .4; the others were not varied.
TRIALS_WORK, LAYERS_WORK, NETWORKS_WORK, OUTPUTS_WORK = 0.25, 0.4, 0.85, 0.9

# Training in parallel
# Limit on the candidates at a time. From this number of rows on, candidates are trained one after the other, each
# with all threads. Below it much of a fit is Python, which leaves threads idle. Journal, "Additive hidden layers and
# final output layers": two threads, 64 against 59 seconds; the limits themselves were not varied.
MAX_PARALLEL, MAX_PARALLEL_ROWS = 3, 20_000
