/* Rounds of boosting in one call: gradients, trees, their leaf regressions, the running fit.

   Trees are known, or LightGBM grows them, or a Python function. The functions of LightGBM's C interface are called by
   their addresses, so the core is not linked with LightGBM. Each step is the one of the separate functions, so both give
   the same bits. */

#include "boostbp.h"

enum { STOPPED = 1, REFUSED = 2, NOT_READ = 3 }; /* faults of a round */

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

/* Grows the trees of a round and reads them; returns a fault, or 0. split: (trees + 1,), zeros. */
static int64_t grow(library_t *library, const float *grad, const float *hess, int64_t n_trees, const splits_t *out,
                    int64_t *split, int64_t *n_words)
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
            return -1;
    }
    return read_splits(library->memory, length, n_trees, out, split, n_words);
}

/* Whether the trees of a round are within their limits. */
static int are_valid(const splits_t *some, const int64_t *split, int64_t n_trees, int64_t n_words, int64_t most_splits,
                     int64_t n_features)
{
    int is_valid = n_words >= 0 && n_words <= some->word_room && largest_part(split, n_trees) <= most_splits;
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

/* Boosts rounds of one tree for each output: grows trees, fits the leaves, and adds their values to the running fit `out`.

   booster, update, iteration, text: addresses. Without a booster, `update` is called with the number of each round. It
   writes the trees behind those so far, their ends to tree_split, and adds the number of their words to done. Without
   both, trees and the columns of their leaves are known.
   sampled: (rounds, rows), or (0, rows) if trees are grown on all rows. grad, out: (outputs, rows). hess: (outputs, rows)
   or (1, rows). With base and target, (outputs, rows), the loss is the squared error of `base + out`, whose gradient is
   computed here. Otherwise `derive`, an address, is called with the number of each round but the first: it writes grad,
   hess, shared_grad and shared_hess, and may change `out`. Both functions return ~number; any other result ends the
   rounds.

   shared_grad, shared_hess: (1, rows), on which one tree is grown for all outputs, each with leaves of its own; or
   (0, rows). most_splits: of a tree. in_float32: (2, outputs, rows), derivatives of the trees that are grown. order,
   values: as for `fit_trees`, with room for the widest leaf possible.

   The arrays of trees and leaves have room for all rounds; their offsets, tree_split, start and weight_start, determine
   what is written, or known. leaf: (trees, rows). done, (3,): the numbers of rounds and of words of sets, and the fault
   that ended the rounds early: STOPPED by a function or by derivatives that are not finite, REFUSED by LightGBM, or
   NOT_READ, a text or trees that are not as expected. */
API int64_t boostbp_boost_rounds(int64_t booster, int64_t update, int64_t iteration, int64_t text, int64_t derive,
                                 const uint8_t *sampled, double unsampled, const binned_t *in, double *grad,
                                 const double *hess, const double *shared_grad, const double *shared_hess,
                                 const double *base, const double *target, int64_t per_feature, int64_t degree,
                                 double penalty, int64_t penalize_constant, int64_t standardize, double learning_rate,
                                 int64_t block_rows, int64_t most_splits, float *in_float32, uint16_t *order,
                                 double *values, double *numbers, int32_t *integers, uint8_t *missing_left,
                                 uint32_t *categories, int64_t *tree_split, int64_t *start, int32_t *column,
                                 double *scaling, int64_t *weight_start, double *weights, void *leaf, int64_t bytes,
                                 double *out, int64_t *done, int64_t samples, int64_t outputs, int64_t hessians,
                                 int64_t shared, int64_t targets, int64_t room, int64_t word_room, int64_t trees,
                                 int64_t leaf_room, int64_t path_room)
{
    SCRATCH scratch = {0};
    library_t library = {(void *)(intptr_t)booster, (update_t *)(intptr_t)update, (iteration_t *)(intptr_t)iteration,
                         (text_of_t *)(intptr_t)text, malloc(1 << 14), 1 << 14};
    int is_grown = update != 0;
    int64_t n_rows = in->n_rows, fault = 0, n_splits = 0, n_words = 0, n_paths = 0, n_weights = 0;
    splits_t all = splits_of(numbers, integers, missing_left, categories, room, word_room);
    int64_t *split = take(&scratch, outputs + 1, sizeof *split), *tree_leaf = take(&scratch, outputs + 1, 8);
    int64_t *served = take(&scratch, 2 * outputs, sizeof *served), *degrees = take(&scratch, outputs, 8);
    int64_t *path_start = take(&scratch, (most_splits + 1) * outputs + 1, 8);
    int64_t *of_weights = take(&scratch, (most_splits + 1) * outputs + 1, 8);
    tree_split[0] = start[0] = weight_start[0] = done[0] = done[1] = 0;
    if (scratch.is_lacking || !library.memory || leaf_room < room + trees)
        fault = -1;
    for (int64_t round = 0; round < trees / outputs && !fault; round++) {
        int64_t first = round * outputs, begun = n_splits + first, n_leaves = outputs, words = 0;
        splits_t some = {all.threshold + n_splits, all.gain + n_splits, all.feature + n_splits, all.left + n_splits,
                         all.right + n_splits, all.cat_start + n_splits, all.cat_words + n_splits,
                         all.missing_left + n_splits, all.categories + n_words, room - n_splits, word_room - n_words};
        if (round > 0 && derive && ((step_t *)(intptr_t)derive)((int)round) != ~(int)round)
            fault = STOPPED;
        for (int64_t output = 0, at = 0; output < outputs && targets > 0; output++)
            for (int64_t row = 0; row < n_rows; row++, at++)
                grad[at] = hess[hessians > 1 ? at : row] * (out[at] + base[at] - target[at]);
        memset(split, 0, (size_t)(outputs + 1) * sizeof *split);
        if (is_grown && !fault) {
            const uint8_t *of_round = samples > 0 ? sampled + round * n_rows : NULL;
            int64_t grown = shared > 0 ? 1 : outputs;
            float *g = in_float32, *h = g + grown * n_rows;
            const double *of_grad = shared > 0 ? shared_grad : grad, *of_hess = shared > 0 ? shared_hess : hess;
            int is_finite = all_finite(grad, outputs * n_rows);
            for (int64_t k = 0; k < grown; k++) {
                const double *of_output = of_hess + (grown > 1 && hessians > 1 ? k * n_rows : 0);
                is_finite &= to_float32(of_grad + k * n_rows, of_round, unsampled, n_rows, g + k * n_rows)
                             && to_float32(of_output, of_round, unsampled, n_rows, h + k * n_rows);
            }
            if (!is_finite) {
                fault = STOPPED;
            } else if (booster) {
                fault = grow(&library, g, h, grown, &some, split, &words);
            } else if (((step_t *)(intptr_t)update)((int)round) == ~(int)round) {
                for (int64_t k = 1; k <= grown; k++)
                    split[k] = tree_split[first + k] - n_splits;
                words = done[1] - n_words;
            } else {
                fault = STOPPED;
            }
            if (!fault && !are_valid(&some, split, grown, words, most_splits, in->n_features))
                fault = NOT_READ;
            if (shared > 0 && !fault)
                repeat(&some, outputs, split);
        }
        for (int64_t k = 1; k <= outputs && !is_grown; k++)
            split[k] = tree_split[first + k] - tree_split[first];
        if (fault)
            break;
        nodes_t nodes = {some.feature, some.threshold, some.left, some.right, some.missing_left, some.cat_start,
                         some.cat_words, is_grown ? some.categories : all.categories, split[outputs]};
        n_leaves += split[outputs];
        memset(path_start, 0, (size_t)(n_leaves + 1) * sizeof *path_start);
        if (is_grown && per_feature > 0
            && boostbp_paths_of(&nodes, split, per_feature, path_start, column + n_paths, outputs, n_leaves,
                                path_room - n_paths))
            fault = -1;
        for (int64_t i = 1; i <= n_leaves && !is_grown; i++)
            path_start[i] = start[begun + i] - start[begun];
        if (path_start[n_leaves] > path_room - n_paths)
            fault = NOT_READ;
        if (fault)
            break;
        for (int64_t output = 0; output < outputs; output++) {
            tree_leaf[output] = split[output] + output;
            served[2 * output] = output, served[2 * output + 1] = 1;
            degrees[output] = degree;
        }
        tree_leaf[outputs] = n_leaves;
        for (int64_t i = 0; i <= n_leaves; i++)
            of_weights[i] = degree * path_start[i] + i;
        leaves_t leaves = {tree_leaf, served, degrees, path_start, column + n_paths, scaling + 4 * n_paths, of_weights,
                           weights + n_weights, outputs, n_leaves, path_start[n_leaves]};
        if (boostbp_fit_trees(&nodes, split, &leaves, in, grad, hess, penalty, penalize_constant, standardize,
                              learning_rate, block_rows, order, values, (char *)leaf + first * n_rows * bytes, bytes,
                              out, outputs, hessians)) {
            fault = -1;
            break;
        }
        /* Offsets of the round become those of all rounds. */
        for (int64_t output = 1; output <= outputs; output++)
            tree_split[first + output] = n_splits + split[output];
        for (int64_t i = 1; i <= n_leaves; i++) {
            start[begun + i] = n_paths + path_start[i];
            weight_start[begun + i] = n_weights + of_weights[i];
        }
        for (int64_t i = 0; i < split[outputs] && is_grown; i++)
            some.cat_start[i] += some.cat_start[i] < 0 ? 0 : (int32_t)n_words;
        n_splits += split[outputs];
        n_words += words;
        n_paths += path_start[n_leaves];
        n_weights += of_weights[n_leaves];
        done[0] = round + 1;
    }
    free(library.memory);
    done[1] = n_words;
    done[2] = fault;
    return fault < 0 ? -1 : 0;
}
