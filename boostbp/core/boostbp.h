/* Common definitions of all stages: records of trees and leaves, leaf numbers, and macros for versions of loops.

   Sums have the same order on every processor. The library is compiled without contraction or reassociation of
   floating-point operations. A sum over rows has LANES partial sums, row i in lane i % LANES, which are added in a
   fixed order (`add_lanes`). Registers of two, four or eight numbers therefore hold the same partial sums.

   Arrays are C-contiguous; the prototypes in `boostbp/core/__init__.py` name their sizes. Functions return 0, or -1 if
   memory is lacking. They allocate nothing per row, and keep no state between calls. */

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

/* Leaf regressions of one or more trees; see `Leaves` in `boostbp/core/__init__.py`. */
typedef struct {
    const int64_t *tree_leaf;   /* (trees + 1,) */
    const int64_t *tree_output; /* (trees, 2) */
    const int64_t *tree_degree; /* (trees,) */
    const int64_t *start;       /* (leaves + 1,) */
    const int32_t *column;      /* (path columns,) */
    const double *scaling;      /* (path columns, 4) */
    const int64_t *weight_start;
    const double *weight;
    int64_t n_trees;
} leaves_t;

/* Returns the leaf of a row under a tree, from leaf numbers (trees, rows) of `bytes` bytes each. */
static inline int64_t leaf_at(const void *leaf, int64_t bytes, int64_t place)
{
    switch (bytes) {
    case 1:
        return ((const uint8_t *)leaf)[place];
    case 2:
        return ((const uint16_t *)leaf)[place];
    case 4:
        return ((const uint32_t *)leaf)[place];
    default:
        return (int64_t)((const uint64_t *)leaf)[place];
    }
}

/* Writes the leaf of a row under a tree; see `leaf_at`. */
static inline void put_leaf(void *leaf, int64_t bytes, int64_t place, int64_t number)
{
    switch (bytes) {
    case 1:
        ((uint8_t *)leaf)[place] = (uint8_t)number;
        break;
    case 2:
        ((uint16_t *)leaf)[place] = (uint16_t)number;
        break;
    case 4:
        ((uint32_t *)leaf)[place] = (uint32_t)number;
        break;
    default:
        ((uint64_t *)leaf)[place] = (uint64_t)number;
    }
}

static inline int64_t largest_part(const int64_t *start, int64_t n)
{
    int64_t most = 0;
    for (int64_t i = 0; i < n; i++)
        if (start[i + 1] - start[i] > most)
            most = start[i + 1] - start[i];
    return most;
}

#endif
