/* Sums over the rows of one block, in registers of WIDTH numbers: sums.c includes this file once for each width.

   Each sum has LANES = 8 partial sums; rows l, l + 8, l + 16, ... are in lane l. A register of 2, 4 or 8 numbers holds
   that many successive lanes. Lanes are added in one order, ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)): halves, then
   quarters, then the last two. So all widths give the same bits. */

#define PASTE(name, width) name##_##width
#define PASTED(name, width) PASTE(name, width)
#define OF_WIDTH(name) PASTED(name, WIDTH)
#define REGISTER OF_WIDTH(register_of)
#define MASK OF_WIDTH(mask_of)
enum { OF_WIDTH(REGISTERS) = LANES / WIDTH }; /* that hold all lanes */

typedef double REGISTER __attribute__((vector_size(8 * WIDTH)));
typedef int64_t MASK __attribute__((vector_size(8 * WIDTH)));

TARGET static inline REGISTER OF_WIDTH(load)(const double *from)
{
    REGISTER lanes;
    memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

TARGET static inline REGISTER OF_WIDTH(select)(MASK which, REGISTER yes, REGISTER no)
{
    return (REGISTER)(((MASK)yes & which) | ((MASK)no & ~which));
}

/* Writes the sum of the two halves of eight lanes. */
TARGET static inline void OF_WIDTH(halve)(const REGISTER *lanes, four_t *out)
{
#if WIDTH == 2
    pair_t low = lanes[0] + lanes[2], high = lanes[1] + lanes[3];
    *out = (four_t){low[0], low[1], high[0], high[1]};
#elif WIDTH == 4
    *out = lanes[0] + lanes[1];
#else
    REGISTER x = lanes[0];
    *out = (four_t){x[0], x[1], x[2], x[3]} + (four_t){x[4], x[5], x[6], x[7]};
#endif
}

/* Writes the products of the rows `first` and `second` with four of `right`, BLOCK numbers apart, summed over n rows.

   Eight sums need six loads. A pass adds WIDTH lanes of all eight sums, so that sums and loaded numbers fit the
   registers of every processor. */
TARGET static inline void OF_WIDTH(tile)(const double *first, const double *second, const double *right, int64_t n,
                                         double out[2][4])
{
    REGISTER sums[8][OF_WIDTH(REGISTERS)];
    for (int pass = 0; pass < OF_WIDTH(REGISTERS); pass++) {
        const double *r = right + WIDTH * pass;
        REGISTER s[8] = {{0.0}};
        for (int64_t i = 0; i < n; i += LANES) {
            REGISTER x = OF_WIDTH(load)(first + WIDTH * pass + i), y = OF_WIDTH(load)(second + WIDTH * pass + i);
#pragma GCC unroll 4
            for (int col = 0; col < 4; col++) {
                REGISTER z = OF_WIDTH(load)(r + col * BLOCK + i);
                KEEP(z);
                s[col] += x * z, s[4 + col] += y * z;
            }
        }
        for (int i = 0; i < 8; i++)
            sums[i][pass] = s[i];
    }
    for (int row = 0; row < 2; row++) {
        four_t four[4];
        for (int col = 0; col < 4; col++)
            OF_WIDTH(halve)(sums[4 * row + col], &four[col]);
        /* The same additions in all four lanes: sums 0 and 2 side by side, and sums 1 and 3. */
        four_t a = four[0], b = four[1], c = four[2], d = four[3];
        a = (four_t){a[0], a[1], c[0], c[1]} + (four_t){a[2], a[3], c[2], c[3]};
        b = (four_t){b[0], b[1], d[0], d[1]} + (four_t){b[2], b[3], d[2], d[3]};
        four_t all = (four_t){a[0], b[0], a[2], b[2]} + (four_t){a[1], b[1], a[3], b[3]};
        memcpy(out[row], &all, sizeof all);
    }
}

/* Adds a block's sum(h phi phi') (lower triangle) and sum(phi t') of n rows, with zeros after the rows. */
TARGET static void OF_WIDTH(add_products)(const block_t *block, int64_t n)
{
    int64_t p = block->p, m = block->m;
    double sums[2][4] __attribute__((aligned(32))), weighted[2][BLOCK] __attribute__((aligned(64)));
    for (int64_t a = 0; a < p + m; a += 2) {
        int64_t last = a + 1 >= p ? p : a + 2; /* skips columns right of the diagonal */
        const double *left[2];
        for (int64_t row = 0; row < 2; row++) {
            const double *restrict h = block->h, *restrict term = left[row] = block->terms + (a + row) * BLOCK;
            if (h && a + row < p) {
                double *restrict product = weighted[row];
                left[row] = product;
                for (int64_t i = 0; i < n; i++)
                    product[i] = h[i] * term[i];
            }
        }
        for (int64_t b = 0; b < last; b += 4) {
            OF_WIDTH(tile)(left[0], left[1], block->terms + b * BLOCK, n, sums);
            for (int64_t row = a; row < a + 2 && row < p + m; row++) {
                double *restrict to = row < p ? block->gram + row * p : block->moment + row - p;
                int64_t step = row < p ? 1 : m, n_cols = (row < p ? row + 1 : p) - b;
                if (step == 1 && n_cols >= 4) /* in one register */
                    for (int col = 0; col < 4; col++)
                        to[b + col] += sums[row - a][col];
                else
                    for (int64_t col = 0; col < n_cols && col < 4; col++)
                        to[(b + col) * step] += sums[row - a][col];
            }
        }
    }
}

/* Adds the sums of one block of a leaf; the targets t are already in the rows of `left` behind the terms. */
TARGET static void OF_WIDTH(add_block)(const block_t *block)
{
    int64_t n = block->n, k = block->k, size = (n + LANES - 1) / LANES * LANES;
    double *terms = block->terms;
    for (int64_t i = 0; i < n; i++)
        terms[i] = 1.0;
    for (int64_t j = 0; j < k; j++) {
        const double *restrict z = block->values + j * block->n_rows;
        double *restrict u = terms + (1 + j) * BLOCK, *restrict square = u + k * BLOCK;
        double center = block->center[j], scale = block->scale[j], fill = block->fill[j];
        REGISTER missing = fill - (REGISTER){0.0};
        int64_t i = 0;
        for (; i + WIDTH <= n; i += WIDTH) {
            REGISTER x = OF_WIDTH(load)(z + i), known = OF_WIDTH(select)(x == x, (x - center) * scale, missing);
            memcpy(u + i, &known, sizeof known);
            if (block->degree == 2) {
                known *= known;
                memcpy(square + i, &known, sizeof known);
            }
        }
        for (; i < n; i++) {
            u[i] = z[i] == z[i] ? in_units(z[i], center, scale) : fill;
            if (block->degree == 2)
                square[i] = u[i] * u[i];
        }
    }
    for (int64_t row = 0; row < block->p + block->m; row++)
        for (int64_t i = n; i < size; i++)
            terms[row * BLOCK + i] = 0.0; /* whole registers, with zeros after the rows */
    OF_WIDTH(add_products)(block, size);
}

/* Writes sum(h z) of n > 0 rows and, if it is a number, the smallest and the largest z; h is NULL for ones. */
TARGET static void OF_WIDTH(ends)(const double *restrict z, const double *restrict h, int64_t n, double *restrict out)
{
    double lanes[LANES] = {0.0}, smallest[WIDTH], largest[WIDTH];
    int64_t i = 0;
    out[1] = out[2] = z[0];
    if (n >= LANES) {
        REGISTER total[OF_WIDTH(REGISTERS)] = {{0.0}}, lower = OF_WIDTH(load)(z), upper = lower;
        for (; i + LANES <= n; i += LANES)
            for (int q = 0; q < OF_WIDTH(REGISTERS); q++) {
                REGISTER x = OF_WIDTH(load)(z + i + WIDTH * q);
                total[q] += h ? OF_WIDTH(load)(h + i + WIDTH * q) * x : x;
                lower = OF_WIDTH(select)(x < lower, x, lower);
                upper = OF_WIDTH(select)(x > upper, x, upper);
            }
        memcpy(lanes, total, sizeof lanes);
        memcpy(smallest, &lower, sizeof lower);
        memcpy(largest, &upper, sizeof upper);
        for (int lane = 0; lane < WIDTH; lane++) {
            out[1] = smallest[lane] < out[1] ? smallest[lane] : out[1];
            out[2] = largest[lane] > out[2] ? largest[lane] : out[2];
        }
    }
    for (int lane = 0; i < n; i++, lane++) {
        lanes[lane] += h ? h[i] * z[i] : z[i];
        out[1] = z[i] < out[1] ? z[i] : out[1];
        out[2] = z[i] > out[2] ? z[i] : out[2];
    }
    out[0] = add_lanes(lanes);
}

#undef REGISTER
#undef MASK
#undef WIDTH
#undef TARGET
