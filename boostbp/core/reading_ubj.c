/* Reader of XGBoost's UBJSON model: the splits of its trees, see `boostbp.backends._xgboost_ubj`.

   A tree is an object of arrays of numbers of one type: a key, which is a length and a name, then `[$`, the type, `#L`,
   the count, and the numbers. All numbers are big-endian. */

#include "boostbp.h"

typedef struct {
    const uint8_t *at; /* numbers; NULL if the tree has no such array */
    int64_t n, bytes;  /* numbers, bytes of a number */
    char type;
} array_t;

static uint64_t bits_of(const uint8_t *at, int64_t bytes)
{
    uint64_t bits = 0;
    for (int64_t i = 0; i < bytes; i++)
        bits = bits << 8 | at[i];
    return bits;
}

/* Returns the bytes of a number of a type; 0 if it is none. */
static int64_t bytes_of(uint8_t type)
{
    switch (type) {
    case 'U': case 'i': return 1;
    case 'I': return 2;
    case 'l': case 'd': return 4;
    case 'L': case 'D': return 8;
    default: return 0;
    }
}

/* Finds the array of a name in some bytes. */
static array_t find(const uint8_t *at, const uint8_t *end, const char *name)
{
    int64_t length = (int64_t)strlen(name), before = 9, after = 13;
    while (end - at > before + length + after && (at = memchr(at, 'L', (size_t)(end - at - length - before - after)))) {
        const uint8_t *type = at + before + length + 2;
        if (bits_of(at + 1, 8) == (uint64_t)length && !memcmp(at + before, name, (size_t)length) && type[-2] == '['
            && type[-1] == '$') {
            int64_t n = (int64_t)bits_of(type + 3, 8), bytes = bytes_of(*type);
            if (bytes && n >= 0 && n <= (end - type - 11) / bytes)
                return (array_t){type + 11, n, bytes, (char)*type};
        }
        at++;
    }
    return (array_t){NULL, 0, 0, 0};
}

/* Returns a number of an array; integers of 64 bits are counts, which a double holds. */
static double number(const array_t *array, int64_t i)
{
    uint64_t bits = bits_of(array->at + i * array->bytes, array->bytes);
    int64_t unused = 64 - 8 * array->bytes;
    if (array->type == 'd') {
        uint32_t low = (uint32_t)bits;
        float x;
        memcpy(&x, &low, sizeof x);
        return x;
    }
    if (array->type == 'D') {
        double x;
        memcpy(&x, &bits, sizeof x);
        return x;
    }
    return array->type == 'U' ? (double)bits : (double)((int64_t)(bits << unused) >> unused);
}

/* Returns an integer from 0 to most - 1, or -1 if the number is none. */
static int64_t integer(const array_t *array, int64_t i, int64_t most)
{
    double x = array->at && i < array->n ? number(array, i) : -1.0;
    return x >= 0.0 && x < (double)most ? (int64_t)x : -1;
}

/* Returns the largest float64 whose float32 rounding is below a threshold: numbers above the midpoint between the
   threshold and its predecessor round to the threshold, the midpoint itself to the one with the even mantissa. */
static double largest_below(float threshold)
{
    float before = nextafterf(threshold, -INFINITY); /* of the smallest number, infinite */
    double middle = ((double)before + threshold) / 2; /* exact in float64 */
    return (float)middle < threshold ? middle : nextafter(middle, -INFINITY);
}

/* Writes the same for n thresholds. */
API int64_t boostbp_largest_below(const float *threshold, double *out, int64_t n_thresholds)
{
    for (int64_t i = 0; i < n_thresholds; i++)
        out[i] = largest_below(threshold[i]);
    return 0;
}

/* The arrays of a tree. */
typedef struct {
    array_t left, right, missing_left, threshold, feature, type, gain, codes, nodes, segments, sizes;
} tree_t;

static tree_t tree_of(const uint8_t *at, const uint8_t *end)
{
    return (tree_t){
        find(at, end, "left_children"), find(at, end, "right_children"), find(at, end, "default_left"),
        find(at, end, "split_conditions"), find(at, end, "split_indices"), find(at, end, "split_type"),
        find(at, end, "loss_changes"), find(at, end, "categories"), find(at, end, "categories_nodes"),
        find(at, end, "categories_segments"), find(at, end, "categories_sizes"),
    };
}

/* Returns the number of words of a category set, up to its largest code; -1 if the set is not as expected. */
static int64_t words_of(const tree_t *tree, int64_t set)
{
    int64_t first = integer(&tree->segments, set, tree->codes.n), largest = -1;
    int64_t size = integer(&tree->sizes, set, tree->codes.n + 1);
    if (first < 0 || size < 1 || first + size > tree->codes.n)
        return -1;
    for (int64_t i = first; i < first + size; i++) {
        int64_t code = integer(&tree->codes, i, INT32_MAX);
        if (code < 0)
            return -1;
        largest = most_of(largest, code);
    }
    return largest / 32 + 1;
}

/* Writes the splits of a tree; returns whether they are as expected. child, (nodes,): each node as a child. is_reached,
   (nodes,): zeros. */
static int write_splits(const tree_t *tree, const int32_t *child, uint8_t *is_reached, int64_t first,
                        const splits_t *out)
{
    int64_t n_nodes = tree->left.n, n_sets = 0;
    for (int64_t node = 0; node < n_nodes; node++) {
        int64_t left = integer(&tree->left, node, n_nodes), right = integer(&tree->right, node, n_nodes);
        int64_t feature = integer(&tree->feature, node, INT32_MAX), is_set = integer(&tree->type, node, 2);
        int64_t split = first + child[node];
        if (child[node] < 0)
            continue;
        /* Children come after their parent, and have one. */
        if (left <= node || right <= node || is_reached[left]++ || is_reached[right]++ || feature < 0 || is_set < 0
            || node >= least_of(tree->missing_left.n, tree->threshold.n))
            return 0;
        n_sets += is_set;
        out->feature[split] = (int32_t)feature;
        /* XGBoost sends float32(x) < condition left. */
        out->threshold[split] = largest_below((float)number(&tree->threshold, node));
        out->left[split] = child[left];
        out->right[split] = child[right];
        out->missing_left[split] = number(&tree->missing_left, node) != 0.0;
        out->cat_start[split] = -1;
        out->cat_words[split] = 0;
        /* Trees with vector leaves have no gains before XGBoost 3. */
        out->gain[split] = node < tree->gain.n ? number(&tree->gain, node) : NAN;
    }
    return n_sets == tree->nodes.n;
}

/* Writes a category set: XGBoost sends its categories right, `Tree` sends them left. */
static void write_set(const tree_t *tree, int64_t set, int64_t split, int64_t word, int64_t n_words, const splits_t *out)
{
    int64_t first = integer(&tree->segments, set, tree->codes.n);
    int64_t end = first + integer(&tree->sizes, set, tree->codes.n + 1);
    int32_t left = out->left[split];
    out->left[split] = out->right[split];
    out->right[split] = left;
    out->missing_left[split] ^= 1;
    out->threshold[split] = NAN;
    out->cat_start[split] = (int32_t)word;
    out->cat_words[split] = (int32_t)n_words;
    memset(out->categories + word, 0, (size_t)n_words * sizeof *out->categories);
    for (int64_t i = first; i < end; i++) {
        int64_t code = integer(&tree->codes, i, INT32_MAX);
        out->categories[word + code / 32] |= UINT32_C(1) << code % 32;
    }
}

/* Reads the splits of trees; see `boostbp_read_trees`. model: from the key of the first array of the first tree on. */
API int64_t boostbp_read_ubj(const uint8_t *model, const split_room_t *all, int64_t *n_words, int64_t n_bytes)
{
    splits_t out = splits_of(all, 0, 0);
    const uint8_t *end = model + n_bytes, *next = find(model, end, "base_weights").at;
    int64_t *tree_split = all->tree_split;
    int is_odd = 0;
    n_words[0] = tree_split[0] = 0;
    for (int64_t k = 0; k < all->n_trees; k++) {
        const uint8_t *at = next;
        next = at ? find(at, end, "base_weights").at : NULL; /* the first array of each tree */
        tree_t tree = at ? tree_of(at, next ? next : end) : (tree_t){0};
        int64_t n_splits = 0, n_nodes = tree.left.n, first = tree_split[k];
        SCRATCH scratch = {0};
        int32_t *child = take(&scratch, n_nodes, sizeof *child);
        uint8_t *is_reached = take(&scratch, n_nodes, 1);
        if (scratch.is_lacking)
            return LACKS_MEMORY;
        memset(is_reached, 0, (size_t)n_nodes);
        for (int64_t node = 0; node < n_nodes; node++) {
            int is_split = integer(&tree.left, node, n_nodes) >= 0;
            child[node] = is_split ? (int32_t)n_splits : ~(int32_t)(node - n_splits);
            n_splits += is_split;
        }
        tree_split[k + 1] = first + n_splits;
        int has_room = tree_split[k + 1] <= all->room;
        is_odd |= n_nodes != 2 * n_splits + 1 || n_nodes > INT32_MAX
                  || (has_room && !write_splits(&tree, child, is_reached, first, &out));
        for (int64_t set = 0; set < tree.nodes.n && !is_odd; set++) {
            int64_t node = integer(&tree.nodes, set, n_nodes), n = words_of(&tree, set);
            is_odd |= node < 0 || n < 0 || child[node] < 0 || integer(&tree.type, node, 2) != 1
                      || (has_room && out.cat_start[first + child[node]] >= 0);
            if (is_odd)
                break;
            if (has_room && n_words[0] + n <= all->word_room)
                write_set(&tree, set, first + child[node], n_words[0], n, &out);
            n_words[0] += n;
        }
    }
    return is_odd ? NOT_READ : 0;
}
