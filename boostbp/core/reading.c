/* Reader of LightGBM's text: the splits of its trees, see `boostbp.backends._lightgbm_calls`.

   A tree is a block of lines `name=numbers`, always in the same order; lines of leaves are passed over. Numbers are
   rounded correctly, and have a point in every locale. */

#define _GNU_SOURCE /* strtod_l */
#include <locale.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

#include "boostbp.h"

#if defined(_WIN32)
#define strtod_l _strtod_l
#define locale_t _locale_t
#define newlocale(mask, name, base) _create_locale(LC_ALL, name)
#define freelocale _free_locale
#endif

enum { CATEGORICAL = 1, DEFAULT_LEFT = 2, MISSING_TYPE = 12, MISSING_IS_NAN = 8 }; /* bits of decision_type */
static const double ZERO = 1e-35f; /* LightGBM reads numbers up to this size as 0.0 */

/* A position in the text, whose lines all end before `end`. */
typedef struct {
    const char *at, *end;
    locale_t c;
    int is_odd; /* whether something was not as expected */
} text_t;

/* Moves to the numbers of the next line of a name. */
static void find(text_t *text, const char *name)
{
    size_t length = strlen(name);
    while (text->at < text->end) {
        const char *line_end = memchr(text->at, '\n', (size_t)(text->end - text->at));
        if (!line_end)
            break;
        if ((size_t)(line_end - text->at) > length && text->at[length] == '=' && !memcmp(text->at, name, length)) {
            text->at += length + 1;
            return;
        }
        text->at = line_end + 1;
    }
    text->is_odd = 1;
}

/* Reads the next integer of a line. */
static int64_t integer(text_t *text)
{
    int64_t n = 0, is_negative;
    if (text->is_odd)
        return 0;
    while (*text->at == ' ')
        text->at++;
    text->at += is_negative = *text->at == '-';
    text->is_odd |= *text->at < '0' || *text->at > '9';
    for (; *text->at >= '0' && *text->at <= '9' && n < UINT32_MAX; text->at++)
        n = 10 * n + (*text->at - '0');
    return is_negative ? -n : n;
}

static void integers(text_t *text, const char *name, int64_t n, int32_t *out)
{
    find(text, name);
    for (int64_t i = 0; i < n && !text->is_odd; i++)
        out[i] = (int32_t)integer(text);
}

static void numbers(text_t *text, const char *name, int64_t n, double *out)
{
    find(text, name);
    for (int64_t i = 0; i < n && !text->is_odd; i++) {
        while (*text->at == ' ')
            text->at++;
        char *after = (char *)text->at;
        if (*after != '\n') /* which strtod would skip */
            out[i] = strtod_l(text->at, &after, text->c);
        text->is_odd = after == text->at || (*after != ' ' && *after != '\n');
        text->at = after;
    }
}

/* Converts the splits of a tree. Before, cat_words has the decision types, and threshold the numbers of sets.
   bounds, (sets + 1,): the first word of each set. */
static void convert(text_t *text, int64_t n, int64_t word, int64_t n_sets, const int32_t *bounds, double *threshold,
                    uint8_t *missing_left, int32_t *cat_start, int32_t *cat_words)
{
    for (int64_t i = 0; i < n && !text->is_odd; i++) {
        int32_t decision = cat_words[i];
        int is_set = decision & CATEGORICAL;
        cat_start[i] = -1;
        cat_words[i] = 0;
        if (is_set) {
            int is_known = threshold[i] >= 0.0 && threshold[i] < (double)n_sets;
            const int32_t *set = is_known ? bounds + (int64_t)threshold[i] : NULL;
            text->is_odd = !set || set[0] < 0 || set[1] < set[0] || set[1] > bounds[n_sets];
            if (text->is_odd)
                return;
            cat_start[i] = (int32_t)(word + set[0]);
            cat_words[i] = set[1] - set[0];
        }
        /* If the missing type is not NaN, LightGBM reads NaN as 0.0. */
        missing_left[i] = !is_set && ((decision & MISSING_TYPE) == MISSING_IS_NAN ? (decision & DEFAULT_LEFT) != 0
                                                                                  : threshold[i] >= 0.0);
        if (is_set)
            threshold[i] = NAN;
        else if (fabs(threshold[i]) <= ZERO) /* to an end of the numbers that are read as 0.0 */
            threshold[i] = threshold[i] < 0.0 ? nextafter(-ZERO, -INFINITY) : ZERO;
    }
}

int64_t read_splits(const char *text, int64_t n_bytes, int64_t n_trees, const splits_t *out, int64_t *tree_split,
                    int64_t *n_words)
{
    text_t in = {.at = text, .end = text + n_bytes, .c = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
    if (!in.c)
        return LACKS_MEMORY;
    n_words[0] = tree_split[0] = 0;
    for (int64_t tree = 0; tree < n_trees; tree++) {
        int64_t first = tree_split[tree], word = n_words[0], n_leaves, n_sets, fits;
        int32_t *bounds = NULL;
        find(&in, "Tree"); /* after the names of the features */
        find(&in, "num_leaves");
        n_leaves = integer(&in);
        find(&in, "num_cat");
        n_sets = integer(&in);
        in.is_odd |= n_leaves < 1 || n_leaves > n_bytes || n_sets > n_bytes;
        tree_split[tree + 1] = in.is_odd ? first : first + n_leaves - 1;
        fits = n_leaves > 1 && tree_split[tree + 1] <= out->room;
        if (fits) {
            integers(&in, "split_feature", n_leaves - 1, out->feature + first);
            numbers(&in, "split_gain", n_leaves - 1, out->gain + first);
            numbers(&in, "threshold", n_leaves - 1, out->threshold + first);
            integers(&in, "decision_type", n_leaves - 1, out->cat_words + first);
            integers(&in, "left_child", n_leaves - 1, out->left + first);
            integers(&in, "right_child", n_leaves - 1, out->right + first);
        }
        if (n_sets > 0 && !in.is_odd) {
            bounds = malloc((size_t)(n_sets + 1) * sizeof *bounds);
            if (!bounds) {
                freelocale(in.c);
                return LACKS_MEMORY;
            }
            integers(&in, "cat_boundaries", n_sets + 1, bounds);
            find(&in, "cat_threshold");
            in.is_odd = in.is_odd || bounds[n_sets] < 0 || bounds[n_sets] > n_bytes;
            n_words[0] += in.is_odd ? 0 : bounds[n_sets];
            for (int64_t i = word; i < n_words[0] && i < out->word_room; i++)
                out->categories[i] = (uint32_t)integer(&in);
        }
        if (fits)
            convert(&in, n_leaves - 1, word, n_sets, bounds, out->threshold + first, out->missing_left + first,
                    out->cat_start + first, out->cat_words + first);
        free(bounds);
    }
    freelocale(in.c);
    return in.is_odd ? NOT_READ : 0;
}

/* Reads the splits of all trees. */
API int64_t boostbp_read_trees(const char *text, const split_room_t *all, int64_t *n_words, int64_t n_bytes)
{
    splits_t out = splits_of(all, 0, 0);
    return read_splits(text, n_bytes, all->n_trees, &out, all->tree_split, n_words);
}
