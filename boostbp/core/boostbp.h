/* What stages share: records of arrays, leaf numbers, scratch memory, and functions of one stage that another calls.

   Sums have the same order on every processor. The library is compiled without contraction or reassociation of
   floating-point operations. A sum over rows has LANES partial sums, row i in lane i % LANES, which are added in a
   fixed order (`add_lanes`). Registers of two, four or eight numbers therefore hold the same partial sums.

   Arrays are C-contiguous; the prototypes in `boostbp/core/__init__.py` name their sizes. Functions return 0 or a fault.
   They allocate nothing per row, and keep no state between calls. */

#ifndef BOOSTBP_H
#define BOOSTBP_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

/* One version of a loop for each width of vector registers, chosen when the library is loaded: before a sanitizer runs.
   A build for processors that all have wide registers needs one. */
#if defined(__AVX2__) && !defined(BOOSTBP_ONE_VERSION)
#define BOOSTBP_ONE_VERSION
#endif
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && !defined(BOOSTBP_ONE_VERSION) \
    && !defined(__SANITIZE_ADDRESS__)
#define WIDE __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define WIDE
#endif

/* Faults: memory is lacking; a function, or derivatives that are not finite, ended the rounds; LightGBM refused one; a
   model or trees are not as expected. */
enum { LACKS_MEMORY = -1, STOPPED = 1, REFUSED = 2, NOT_READ = 3 };
enum { LANES = 8 };                                      /* partial sums of each sum over rows */
enum { BLOCK = 256 };                                    /* rows whose terms are in cache at a time */
enum { TILE = 128 };                                     /* rows in cache that pass through all trees at a time */
enum { CENTER = 0, INV_SCALE = 1, LOWER = 2, UPPER = 3 }; /* columns of `scaling` */

/* Splits of one or more trees; see `boostbp.trees.tree.Tree`. */
typedef struct {
    const int32_t *feature;
    const double *threshold;
    const int32_t *left, *right;
    const uint8_t *missing_left;
    const int32_t *cat_start, *cat_words;
    const uint32_t *categories;
    int64_t n_splits;
} nodes_t;

/* Memory for the splits of trees, and for the words of their category sets; see `boostbp.trees.tree.SplitRoom`. */
typedef struct {
    double *numbers;   /* (2, room) thresholds and gains */
    int32_t *integers; /* (5, room) features, left and right children, first words and numbers of words of sets */
    uint8_t *missing_left;
    uint32_t *categories;
    int64_t *tree_split;
    int64_t room, word_room, n_trees;
} split_room_t;

/* The same, array by array, from some split and some word on. */
typedef struct {
    double *threshold, *gain;
    int32_t *feature, *left, *right, *cat_start, *cat_words;
    uint8_t *missing_left;
    uint32_t *categories;
    int64_t room, word_room;
} splits_t;

static inline splits_t splits_of(const split_room_t *all, int64_t split, int64_t word)
{
    int64_t room = all->room;
    double *numbers = all->numbers + split;
    int32_t *integers = all->integers + split;
    return (splits_t){numbers,
                      numbers + room,
                      integers,
                      integers + room,
                      integers + 2 * room,
                      integers + 3 * room,
                      integers + 4 * room,
                      all->missing_left + split,
                      all->categories + word,
                      room - split,
                      all->word_room - word};
}

/* Leaf regressions of one or more trees; see `Leaves` in `boostbp/core/__init__.py`. */
typedef struct {
    const int64_t *tree_leaf, *tree_output, *tree_degree, *start;
    const int32_t *column;
    double *scaling;
    const int64_t *weight_start;
    double *weight;
    int64_t n_trees, n_leaves, n_paths;
} leaves_t;

/* The rows of a block, grouped by leaf; see `LeafRows` in `boostbp/core/__init__.py`. */
typedef struct {
    int64_t first, *start;
    uint16_t *order;
    const int64_t *path_start;
    double *values;
    int64_t n_leaves, n_grouped;
} leaf_rows_t;

/* Rows whose leaves are known, with the columns that leaves read. */
typedef struct {
    const void *leaf; /* (trees, rows) numbers of `bytes` bytes */
    int64_t bytes;
    const double *Z;
    int64_t n_trees, n_rows, n_columns;
} at_leaves_t;

/* An input with the bins of its values; see grouping.c. */
typedef struct {
    const double *X, *Z;
    const uint8_t *bins;
    const double *lower, *upper;
    int64_t n_rows, n_features, n_columns, n_ends;
} binned_t;

/* Gradients and hessians, (outputs, rows); hessians may be (1, rows). */
typedef struct {
    const double *grad, *hess;
    int64_t n_outputs, n_rows, n_hessians;
} derivatives_t;

/* How leaves are fitted; block_rows: rows whose sums are taken together, at most 2^16. */
typedef struct {
    double penalty;
    int64_t penalize_constant, standardize;
    double learning_rate;
    int64_t block_rows;
} ridge_t;

/* Scratch memory of fits: order, (rows,), and values, (rows x most path columns of a leaf,). */
typedef struct {
    uint16_t *order;
    double *values;
    int64_t n_rows;
} space_t;

/* Scratch memory of a call, which is freed where the block ends that declares it as SCRATCH. */
enum { MOST_TAKEN = 24 };
typedef struct {
    void *taken[MOST_TAKEN];
    int n, is_lacking;
} scratch_t;

/* Returns memory for n numbers of some bytes; NULL if it is lacking, more than addresses count, or taken too often. */
static inline void *take(scratch_t *scratch, int64_t n, size_t bytes)
{
    void *memory = NULL;
    if (scratch->n < MOST_TAKEN && n >= 0 && (uint64_t)n < PTRDIFF_MAX / bytes)
        memory = scratch->taken[scratch->n++] = malloc((size_t)n * bytes + 1);
    scratch->is_lacking |= !memory;
    return memory;
}

static inline void free_all(scratch_t *scratch)
{
    while (scratch->n > 0)
        free(scratch->taken[--scratch->n]);
}
#define SCRATCH __attribute__((cleanup(free_all))) scratch_t

static inline int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t largest_part(const int64_t *start, int64_t n)
{
    int64_t most = 0;
    for (int64_t i = 0; i < n; i++)
        most = most_of(most, start[i + 1] - start[i]);
    return most;
}

/* Minimum and maximum as in Python: the first number, unless the second compares smaller or larger. */
static inline double lesser(double a, double b)
{
    return b < a ? b : a;
}

static inline double greater(double a, double b)
{
    return b > a ? b : a;
}

/* Returns a value, or 0 if it is not kept, by operations on bits, which compilers vectorise, unlike a selection. */
static inline double or_zero(double value, int is_kept)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= -(uint64_t)is_kept;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

/* Fetches numbers into the caches in order, before they are used out of order. */
static inline void fetch(const double *numbers, int64_t n)
{
    for (int64_t i = 0; i < n; i += 8)
        __builtin_prefetch(numbers + i);
}

/* Returns the leaf of a row under a tree, from leaf numbers (trees, rows) of `bytes` bytes each. */
static inline int64_t leaf_at(const void *leaf, int64_t bytes, int64_t place)
{
    if (bytes == 1)
        return ((const uint8_t *)leaf)[place];
    if (bytes == 2)
        return ((const uint16_t *)leaf)[place];
    return bytes == 4 ? ((const uint32_t *)leaf)[place] : ((const int64_t *)leaf)[place];
}

static inline void put_leaf(void *leaf, int64_t bytes, int64_t place, int64_t number)
{
    if (bytes == 1)
        ((uint8_t *)leaf)[place] = (uint8_t)number;
    else if (bytes == 2)
        ((uint16_t *)leaf)[place] = (uint16_t)number;
    else if (bytes == 4)
        ((uint32_t *)leaf)[place] = (uint32_t)number;
    else
        ((int64_t *)leaf)[place] = number;
}

/* A counting sort of n rows by leaf: rows of a leaf keep their order; `start` (leaves + 1,). */
static inline void sort_rows_of(const void *leaf, int64_t bytes, int64_t first, int64_t n, int64_t leaves,
                                uint16_t *restrict order, int64_t *restrict start)
{
    int64_t before = 0;
    memset(start, 0, sizeof *start * (size_t)(leaves + 1));
    for (int64_t row = 0; row < n; row++)
        start[leaf_at(leaf, bytes, first + row)]++;
    for (int64_t number = 0; number <= leaves; number++)
        start[number] = before += start[number];
    for (int64_t row = n - 1; row >= 0; row--)
        order[--start[leaf_at(leaf, bytes, first + row)]] = (uint16_t)row;
}

static inline void sort_rows(const void *leaf, int64_t bytes, int64_t first, int64_t n, int64_t leaves, uint16_t *order,
                             int64_t *start)
{
    if (bytes == 1) /* nearly always; a constant for the compiler */
        sort_rows_of(leaf, 1, first, n, leaves, order, start);
    else
        sort_rows_of(leaf, bytes, first, n, leaves, order, start);
}

/* Returns u of a number: (z - center) / scale. All stages must round it alike, and `boostbp_standardised` of rows.c. */
static inline double in_units(double z, double center, double inverse)
{
    return (z - center) * inverse;
}

/* The regression of one leaf, w_0 + sum_j u_j (w_j + u_j w_jj), u = (z - center) / scale. */
typedef struct {
    int64_t k, m, degree;  /* its path columns, the outputs that the tree serves, 1 or 2 */
    const int32_t *column; /* (k,) */
    const double *scaling; /* (k, 4) */
    double *constant;      /* (m,) w_0 */
    double *linear;        /* (k, m) w_j */
    double *square;        /* (k, m) w_jj, for degree 2 */
} regression_t;

static inline regression_t regression_of(const leaves_t *leaves, int64_t tree, int64_t leaf)
{
    int64_t number = leaves->tree_leaf[tree] + leaf, path = leaves->start[number];
    int64_t k = leaves->start[number + 1] - path, m = leaves->tree_output[2 * tree + 1];
    double *w = leaves->weight + leaves->weight_start[number];
    return (regression_t){k, m, leaves->tree_degree[tree], leaves->column + path, leaves->scaling + 4 * path, w, w + m,
                          w + (1 + k) * m};
}

/* The regression of the leaf of a row. */
static inline regression_t regression_at(const leaves_t *leaves, const at_leaves_t *at, int64_t tree, int64_t row)
{
    return regression_of(leaves, tree, leaf_at(at->leaf, at->bytes, tree * at->n_rows + row));
}

/* Whether a split sends a value left; see routing.c. */
static inline int sends_left(const nodes_t *nodes, int64_t split, double value)
{
    if (value != value)
        return nodes->missing_left[split];
    if (nodes->cat_start[split] < 0)
        return value <= nodes->threshold[split];
    if (!(value > -1.0 && value < 32.0 * nodes->cat_words[split]))
        return 0;
    int64_t code = (int64_t)value;
    return nodes->categories[nodes->cat_start[split] + code / 32] >> code % 32 & 1;
}

/* Whether a split sends a row left. */
static inline int goes_left(const nodes_t *nodes, int64_t split, const double *x)
{
    return sends_left(nodes, split, x[nodes->feature[split]]);
}

/* reading.c: reads the first trees of a text. tree_split, (trees + 1,), and n_words, (1,), are written. Splits and words
   of a tree are written if there is room for them. */
int64_t read_splits(const char *text, int64_t n_bytes, int64_t n_trees, const splits_t *out, int64_t *tree_split,
                    int64_t *n_words);

/* routing.c */
API int64_t boostbp_paths_of(const nodes_t *nodes, const int64_t *tree_split, int64_t per_feature, int64_t *start,
                             int32_t *column, int64_t n_trees, int64_t n_leaves, int64_t room);

/* tree_fits.c */
int64_t fit_trees(const nodes_t *nodes, const int64_t *tree_split, const leaves_t *leaves, const binned_t *in,
                  const derivatives_t *derivatives, const ridge_t *ridge, const space_t *space, void *leaf,
                  int64_t bytes, double *out);

/* evaluation.c */
API int64_t boostbp_add_values(const leaf_rows_t *rows, int64_t degree, const double *scaling, const double *weight,
                               double *out, int64_t n_outputs, int64_t n_rows);

/* grouping.c: grouping of rows by the leaves of one tree. */
enum { MOST_KNOWN = 127 }; /* splits that have a code: with the 128 nodes below them, codes fit a byte */

/* Where a split sends two runs of bins, begin .. begin + more, modulo 256; a single run stands twice. */
typedef struct {
    uint8_t from, begin[2], more[2], to[2]; /* codes of the split, and of its children */
} move_t;

/* A path column of a leaf, and the place of its first row among the copied numbers. */
typedef struct {
    int32_t column, place;
} target_t;

typedef struct {
    const nodes_t *nodes;
    const binned_t *in;
    void *leaf;        /* (trees, rows) numbers of `bytes` bytes, written */
    int64_t bytes, n_moves;
    move_t *move;      /* (n_moves,) split by split */
    int32_t node[256]; /* the node of each code: a split, or ~leaf */
    int64_t *ends;     /* (leaves,) scratch */
    target_t *target;  /* (leaves, most columns of a leaf) scratch */
    uint8_t *at;       /* (most rows of a block,) scratch: code of the node where each row is */
} grouping_t;

void open_grouping(grouping_t *grouping, scratch_t *scratch, int64_t most_splits, int64_t most_rows,
                   int64_t most_columns);
/* Notes where splits first .. first + n_splits - 1, those of a tree, send each bin. */
void find_moves(grouping_t *grouping, int64_t first, int64_t n_splits);
/* Groups the rows of a block by the leaves of a tree, whose splits begin at `first`, and copies their path columns. */
void group_tree(const grouping_t *grouping, int64_t first, int64_t tree, const int32_t *column,
                const leaf_rows_t *rows);

/* scaling.c */
void scaling_of(const double *range, double flat_scale, double *out);

/* solving.c */
void solve_leaf(const double *gram, double *w, int64_t p, int64_t m, double penalty, int64_t penalize_constant,
                double scale, double *a);
API int64_t boostbp_solve_leaves(const int64_t *path_start, int64_t degree, int64_t n_outputs, const double *gram,
                                 double *weight, double penalty, int64_t penalize_constant, double scale,
                                 int64_t n_leaves);
API int64_t boostbp_scale_weights(const int64_t *path_start, int64_t degree, int64_t n_outputs, const double *scaling,
                                  double *weight, int64_t n_leaves, int64_t n_paths);

/* sums.c */
API int64_t boostbp_leaf_ranges(const leaf_rows_t *rows, const double *hess, double *out, int64_t n_weights,
                                int64_t n_paths);
API int64_t boostbp_leaf_sums(const leaf_rows_t *rows, const double *units, int64_t degree, const double *grad,
                              const double *hess, double *gram, double *moment, int64_t n_paths, int64_t n_outputs,
                              int64_t n_rows, int64_t n_weights);

#endif
