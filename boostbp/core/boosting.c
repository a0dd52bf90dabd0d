/* Rounds of boosting in one call: gradients, trees, their leaf regressions, the running fit.

   Trees are known, or LightGBM grows them, or a Python function. The functions of LightGBM's C interface are called by
   their addresses, so the core is not linked with LightGBM. Each step is the one of the separate functions, so both give
   the same bits. */

#include "boostbp.h"

typedef int step_t(int round);
typedef int update_t(void *booster, const float *grad, const float *hess, int *is_finished);
typedef int iteration_t(void *booster, int *number);
typedef int text_of_t(void *booster, int first, int number, int importances, int64_t size, int64_t *length, char *text);

/* Writes what a library receives: derivatives in float32, with the factor `unsampled` in rows that are not sampled.
   Returns whether all are finite. */
static int to_float32(const double *from, const uint8_t *sampled, double unsampled, int64_t n_rows, float *out)
{
    int is_finite = 1;
    for (int64_t row = 0; row < n_rows; row++) {
        out[row] = (float)(from[row] * (!sampled || sampled[row] ? 1.0 : unsampled));
        is_finite &= fabsf(out[row]) < INFINITY;
    }
    return is_finite;
}

/* A booster of LightGBM, functions of its C interface, and memory of so many bytes for a text. */
typedef struct {
    void *booster;
    update_t *update;
    iteration_t *iteration;
    text_of_t *text_of;
    char *memory;
    int64_t size;
} library_t;

/* Grows the trees of a round and reads them; split: (trees + 1,), zeros. */
static int64_t grow_by_library(library_t *library, const float *grad, const float *hess, int64_t n_trees,
                               const splits_t *out, int64_t *split, int64_t *n_words)
{
    int64_t length = 0;
    int before = 0, after = 0, is_finished;
    if (library->iteration(library->booster, &before) || library->update(library->booster, grad, hess, &is_finished)
        || library->iteration(library->booster, &after))
        return REFUSED;
    if (after == before) /* LightGBM removes a round without a split */
        return 0;
    for (;;) {
        if (library->text_of(library->booster, before, 1, 0, library->size, &length, library->memory))
            return REFUSED;
        if (length <= library->size)
            break;
        free(library->memory);
        library->size = 2 * length;
        library->memory = malloc((size_t)library->size);
        if (!library->memory)
            return LACKS_MEMORY;
    }
    return read_splits(library->memory, length, n_trees, out, split, n_words);
}

/* Whether the trees of a round are within their limits. */
static int are_valid(const splits_t *some, const int64_t *split, int64_t n_trees, int64_t n_words, int64_t most_splits,
                     int64_t n_features)
{
    int is_valid = n_words <= some->word_room && largest_part(split, n_trees) <= most_splits;
    for (int64_t i = 0; is_valid && i < split[n_trees]; i++)
        is_valid = some->feature[i] >= 0 && some->feature[i] < n_features;
    return is_valid;
}

/* Gives the first tree to all outputs. */
static void repeat(const splits_t *some, int64_t n_outputs, int64_t *split)
{
    int64_t n = split[1];
    for (int64_t output = 1; output < n_outputs; output++) {
        size_t numbers = (size_t)n * sizeof(double), integers = (size_t)n * sizeof(int32_t);
        memcpy(some->threshold + output * n, some->threshold, numbers);
        memcpy(some->gain + output * n, some->gain, numbers);
        memcpy(some->feature + output * n, some->feature, integers);
        memcpy(some->left + output * n, some->left, integers);
        memcpy(some->right + output * n, some->right, integers);
        memcpy(some->cat_start + output * n, some->cat_start, integers);
        memcpy(some->cat_words + output * n, some->cat_words, integers);
        memcpy(some->missing_left + output * n, some->missing_left, (size_t)n);
        split[output + 1] = (output + 1) * n;
    }
}

static int all_finite(const double *x, int64_t n)
{
    int is_finite = 1;
    for (int64_t i = 0; i < n; i++)
        is_finite &= fabs(x[i]) < INFINITY;
    return is_finite;
}

/* How trees are grown. */
typedef struct {
    int64_t booster, update, iteration, text, derive;
    const uint8_t *sampled;
    double unsampled;
    float *in_float32;
    int64_t n_samples, n_rows, n_grown;
} grower_t;

/* Derivatives of the loss. */
typedef struct {
    double *grad;
    const double *hess, *shared_grad, *shared_hess, *base, *target;
    int64_t n_outputs, n_rows, n_hessians, n_shared, n_targets;
} objective_t;

/* Memory for leaves: per_feature and degree are those of their basis. */
typedef struct {
    int64_t per_feature, degree, *start;
    int32_t *column;
    double *scaling;
    int64_t *weight_start;
    double *weight;
    int64_t leaf_room, path_room;
} leaf_room_t;

static int64_t call(int64_t address, int64_t round)
{
    return ((step_t *)(intptr_t)address)((int)round) == ~(int)round ? 0 : STOPPED;
}

/* Writes the gradient of the squared error of base + out. */
static void subtract_target(const objective_t *loss, const double *out)
{
    for (int64_t output = 0, at = 0; output < loss->n_outputs; output++)
        for (int64_t row = 0; row < loss->n_rows; row++, at++)
            loss->grad[at] = loss->hess[loss->n_hessians > 1 ? at : row] * (out[at] + loss->base[at] - loss->target[at]);
}

/* Writes the derivatives on which the trees of a round are grown; returns how many trees, or 0 if some are not finite. */
static int64_t derivatives_of_growth(const grower_t *grower, const objective_t *loss, int64_t round)
{
    const double *grad = loss->n_shared > 0 ? loss->shared_grad : loss->grad;
    const double *hess = loss->n_shared > 0 ? loss->shared_hess : loss->hess;
    const uint8_t *sampled = grower->n_samples > 0 ? grower->sampled + round * loss->n_rows : NULL;
    int64_t n_trees = grower->n_grown, n_rows = loss->n_rows;
    int is_finite = all_finite(loss->grad, loss->n_outputs * n_rows);
    for (int64_t k = 0; k < n_trees; k++) {
        const double *h = hess + (n_trees > 1 && loss->n_hessians > 1 ? k * n_rows : 0);
        float *out = grower->in_float32 + k * n_rows;
        is_finite &= to_float32(grad + k * n_rows, sampled, grower->unsampled, n_rows, out)
                     && to_float32(h, sampled, grower->unsampled, n_rows, out + n_trees * n_rows);
    }
    return is_finite ? n_trees : 0;
}

/* Grows the trees of a round. tree_split: those of the round; split: (outputs + 1,), zeros; words: of their sets. */
static int64_t grow(const grower_t *grower, library_t *library, const objective_t *loss, const int64_t *tree_split,
                    const splits_t *some, int64_t *done, int64_t most_splits, int64_t n_features, int64_t *split,
                    int64_t *words)
{
    int64_t before = done[1], fault, n_trees = derivatives_of_growth(grower, loss, done[0]);
    const float *grad = grower->in_float32, *hess = grad + n_trees * loss->n_rows;
    if (!n_trees)
        return STOPPED;
    if (library->booster) {
        fault = grow_by_library(library, grad, hess, n_trees, some, split, words);
    } else {
        fault = call(grower->update, done[0]);
        for (int64_t k = 1; k <= n_trees && !fault; k++)
            split[k] = tree_split[k] - tree_split[0];
        *words = done[1] - before;
        done[1] = before;
    }
    if (!fault && !are_valid(some, split, n_trees, *words, most_splits, n_features))
        fault = NOT_READ;
    if (loss->n_shared > 0 && !fault)
        repeat(some, loss->n_outputs, split);
    return fault;
}

/* Boosts rounds of one tree for each output: grows trees, fits the leaves, and adds their values to the running fit `out`.

   grower: addresses of a booster and of functions. Without a booster, `update` is called with the number of each round.
   It writes the trees behind those so far, their ends to tree_split, and adds the number of their words to done[1].
   Without both, trees and the columns of their leaves are known. sampled: (rounds, rows), or (0, rows) if trees are
   grown on all rows. in_float32: (2, grown, rows), derivatives of the trees that are grown in a round.

   objective: grad, (outputs, rows); hess, (outputs, rows) or (1, rows). With base and target, (outputs, rows), the loss
   is the squared error of `base + out`, whose gradient is computed here. Otherwise `derive` is called with the number of
   each round but the first: it writes grad, hess, shared_grad and shared_hess, and may change `out`. Both functions
   return ~number; any other result ends the rounds. shared_grad, shared_hess: (1, rows), on which one tree is grown for
   all outputs, each with leaves of its own; or (0, rows).

   most_splits: of a tree. The arrays of trees and leaves have room for all rounds; their offsets, tree_split, start and
   weight_start, determine what is written, or known. leaf: (trees, rows). done: the numbers of rounds, and of words of
   sets, that were boosted. Returns the fault that ended the rounds early. */
API int64_t boostbp_boost_rounds(const grower_t *grower, const binned_t *in, const objective_t *objective,
                                 const ridge_t *ridge, const space_t *space, const split_room_t *splits,
                                 int64_t most_splits, const leaf_room_t *leaves, void *leaf, int64_t bytes, double *out,
                                 int64_t *done)
{
    SCRATCH scratch = {0};
    library_t library = {(void *)(intptr_t)grower->booster, (update_t *)(intptr_t)grower->update,
                         (iteration_t *)(intptr_t)grower->iteration, (text_of_t *)(intptr_t)grower->text, malloc(1 << 14),
                         1 << 14};
    int is_grown = grower->update != 0;
    int64_t n_rows = in->n_rows, n_outputs = objective->n_outputs, degree = leaves->degree, fault = 0;
    int64_t n_splits = 0, n_paths = 0, n_weights = 0, *tree_split = splits->tree_split, *start = leaves->start;
    derivatives_t derivatives = {objective->grad, objective->hess, n_outputs, n_rows, objective->n_hessians};
    int64_t *split = take(&scratch, n_outputs + 1, sizeof *split), *tree_leaf = take(&scratch, n_outputs + 1, 8);
    int64_t *served = take(&scratch, 2 * n_outputs, sizeof *served), *degrees = take(&scratch, n_outputs, 8);
    int64_t *path_start = take(&scratch, (most_splits + 1) * n_outputs + 1, 8);
    int64_t *of_weights = take(&scratch, (most_splits + 1) * n_outputs + 1, 8);
    tree_split[0] = start[0] = leaves->weight_start[0] = done[0] = done[1] = 0;
    if (scratch.is_lacking || !library.memory || leaves->leaf_room < splits->room + splits->n_trees)
        fault = LACKS_MEMORY;
    for (int64_t round = 0; round < splits->n_trees / n_outputs && !fault; round++) {
        int64_t first = round * n_outputs, begun = n_splits + first, n_leaves, words = 0;
        splits_t some = splits_of(splits, n_splits, done[1]);
        int32_t *column = leaves->column + n_paths;
        if (round > 0 && grower->derive)
            fault = call(grower->derive, round);
        if (objective->n_targets > 0)
            subtract_target(objective, out);
        memset(split, 0, (size_t)(n_outputs + 1) * sizeof *split);
        if (is_grown && !fault)
            fault = grow(grower, &library, objective, tree_split + first, &some, done, most_splits, in->n_features, split,
                         &words);
        for (int64_t k = 1; k <= n_outputs && !is_grown; k++)
            split[k] = tree_split[first + k] - tree_split[first];
        if (fault)
            break;
        nodes_t nodes = {some.feature, some.threshold, some.left, some.right, some.missing_left, some.cat_start,
                         some.cat_words, is_grown ? some.categories : splits->categories, split[n_outputs]};
        n_leaves = n_outputs + split[n_outputs];
        memset(path_start, 0, (size_t)(n_leaves + 1) * sizeof *path_start);
        if (is_grown && leaves->per_feature > 0)
            fault = boostbp_paths_of(&nodes, split, leaves->per_feature, path_start, column, n_outputs, n_leaves,
                                     leaves->path_room - n_paths);
        for (int64_t i = 1; i <= n_leaves && !is_grown; i++)
            path_start[i] = start[begun + i] - start[begun];
        if (!fault && path_start[n_leaves] > leaves->path_room - n_paths)
            fault = NOT_READ;
        if (fault)
            break;
        for (int64_t output = 0; output < n_outputs; output++) {
            tree_leaf[output] = split[output] + output;
            served[2 * output] = output, served[2 * output + 1] = 1;
            degrees[output] = degree;
        }
        tree_leaf[n_outputs] = n_leaves;
        for (int64_t i = 0; i <= n_leaves; i++)
            of_weights[i] = degree * path_start[i] + i;
        leaves_t fitted = {tree_leaf, served, degrees, path_start, column, leaves->scaling + 4 * n_paths, of_weights,
                           leaves->weight + n_weights, n_outputs, n_leaves, path_start[n_leaves]};
        fault = fit_trees(&nodes, split, &fitted, in, &derivatives, ridge, space,
                          (char *)leaf + first * n_rows * bytes, bytes, out);
        if (fault)
            break;
        /* Offsets of the round become those of all rounds. */
        for (int64_t output = 1; output <= n_outputs; output++)
            tree_split[first + output] = n_splits + split[output];
        for (int64_t i = 1; i <= n_leaves; i++) {
            start[begun + i] = n_paths + path_start[i];
            leaves->weight_start[begun + i] = n_weights + of_weights[i];
        }
        for (int64_t i = 0; i < split[n_outputs] && is_grown; i++)
            some.cat_start[i] += some.cat_start[i] < 0 ? 0 : (int32_t)done[1];
        n_splits += split[n_outputs];
        n_paths += path_start[n_leaves];
        n_weights += of_weights[n_leaves];
        done[0] = round + 1;
        done[1] += words;
    }
    free(library.memory);
    return fault;
}
