/* Memory for NumPy's arrays in `boostbp.inputs.disk_arrays`: the C library's for small arrays, mappings of unnamed
   files for large ones.

   These functions call only the C library, so they may run during an exception, without Python's lock, in a forked
   child, or at the end of interpreter shutdown. A handler is therefore never freed.

   Within a block, mappings of freed arrays are kept for later arrays of the same size: filling 24 MB takes 10 ms in new
   pages of a file, 2 ms in NumPy's own memory, and 1 ms in existing pages.

   macOS and Windows have no posix_fallocate, so arrays stay in memory there: on a full disk, a write to an unallocated
   page would end the process. */

#if !defined(_WIN32) && !defined(__APPLE__)

#include "boostbp.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HEADER = 64 };  /* bytes before an array, so that it begins at a cache line */
enum { N_SLOTS = 32 }; /* an epoch allocates arrays of some thirty sizes */
static const size_t MOST_KEPT = (size_t)1 << 28; /* bytes of a mapping in a slot; larger ones fill the disk */

/* Header before an array: its size with the header, and the process that created its file, 0 if it is in memory. */
typedef struct {
    size_t size;
    pid_t process;
} header_t;

/* PyDataMem_Handler of NumPy, and what its functions need. */
typedef struct {
    char name[127];
    uint8_t version;
    void *context; /* this record */
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *data, size_t size);
    void (*free)(void *context, void *data, size_t size);
    /* ours from here on */
    char *pattern;     /* of the names of files, for mkstemp */
    size_t least;      /* bytes of an array in a file */
    atomic_int error;  /* number of the last one of a file */
    atomic_long users; /* blocks within which arrays lie in files */
    _Atomic(header_t *) slots[N_SLOTS];
} handler_t;

static void unmap(header_t *mapping)
{
    munmap(mapping, mapping->size);
}

/* Takes a mapping of this size from the slots; NULL if there is none. Those of a parent process are not used. */
static header_t *take_kept(handler_t *handler, size_t size)
{
    for (int slot = 0; slot < N_SLOTS; slot++) {
        header_t *mapping = atomic_exchange(&handler->slots[slot], NULL);
        if (!mapping)
            continue;
        if (mapping->size == size && mapping->process == getpid())
            return mapping;
        mapping = atomic_exchange(&handler->slots[slot], mapping); /* another thread may have put one there */
        if (mapping)
            unmap(mapping);
    }
    return NULL;
}

/* Puts a mapping into the first slot and moves the others; the last one is unmapped. */
static void keep(handler_t *handler, header_t *mapping)
{
    if (handler->users > 0 && mapping->size <= MOST_KEPT && mapping->process == getpid()) {
        for (int slot = 0; slot < N_SLOTS && mapping; slot++)
            mapping = atomic_exchange(&handler->slots[slot], mapping);
    }
    if (mapping)
        unmap(mapping);
}

/* Maps a new file of zeros; NULL if the disk is full, which NumPy reports as a lack of memory. */
static header_t *map_file(handler_t *handler, size_t size)
{
    char *name = strdup(handler->pattern);
    int file = name ? mkstemp(name) : -1, error = file < 0 ? errno : 0;
    if (file >= 0)
        unlink(name);
    free(name);
    if (file >= 0) {
        do
            error = posix_fallocate(file, 0, (off_t)size);
        while (error == EINTR); /* interrupted by a signal */
    }
    handler->error = error;
    void *mapping = error ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    return mapping == MAP_FAILED ? NULL : mapping;
}

static void *make(handler_t *handler, size_t size, int zeroed)
{
    if (size > PTRDIFF_MAX - HEADER)
        return NULL;
    size_t whole = size + HEADER;
    header_t *header;
    if (size < handler->least) {
        header = zeroed ? calloc(1, whole) : malloc(whole);
    } else {
        header = take_kept(handler, whole);
        if (!header)
            header = map_file(handler, whole);
        else if (zeroed)
            memset(header, 0, whole);
    }
    if (!header)
        return NULL;
    header->size = whole;
    header->process = size < handler->least ? 0 : getpid();
    return (char *)header + HEADER;
}

static header_t *header_of(void *data)
{
    return (header_t *)((char *)data - HEADER);
}

static void *handler_malloc(void *context, size_t size)
{
    return make(context, size, 0);
}

static void *handler_calloc(void *context, size_t count, size_t size)
{
    return size && count > PTRDIFF_MAX / size ? NULL : make(context, count * size, 1);
}

/* Frees an array. For an empty one, NumPy passes another size than it requested. */
static void handler_free(void *context, void *data, size_t size)
{
    if (!data)
        return;
    header_t *header = header_of(data);
    if (header->process)
        keep(context, header);
    else
        free(header);
}

static void *handler_realloc(void *context, void *data, size_t size)
{
    void *other = make(context, size, 0);
    if (other && data) {
        size_t before = header_of(data)->size - HEADER;
        memcpy(other, data, before < size ? before : size);
        handler_free(context, data, before);
    }
    return other;
}

/* Creates a handler that puts arrays from `least` bytes on into files named by a pattern; NULL without memory. */
API void *boostbp_file_handler(const char *pattern, int64_t least)
{
    handler_t *handler = calloc(1, sizeof *handler);
    char *copy = strdup(pattern);
    if (!handler || !copy) {
        free(handler);
        free(copy);
        return NULL;
    }
    strcpy(handler->name, "boostbp");
    handler->version = 1;
    handler->context = handler;
    handler->malloc = handler_malloc;
    handler->calloc = handler_calloc;
    handler->realloc = handler_realloc;
    handler->free = handler_free;
    handler->pattern = copy;
    handler->least = (size_t)least;
    return handler;
}

/* Begins a block in which large arrays are in files. */
API void boostbp_files_begin(void *context)
{
    handler_t *handler = context;
    handler->error = 0;
    handler->users++;
}

/* Ends a block; after the last one, closes the files of freed arrays. */
API void boostbp_files_end(void *context)
{
    handler_t *handler = context;
    if (--handler->users > 0)
        return;
    for (int slot = 0; slot < N_SLOTS; slot++) {
        header_t *mapping = atomic_exchange(&handler->slots[slot], NULL);
        if (mapping)
            unmap(mapping);
    }
}

/* Returns the number of the last error of a file since a block began; 0 if there was none. */
API int64_t boostbp_files_error(void *context)
{
    return ((handler_t *)context)->error;
}

#else
typedef int no_files; /* a file of C must declare something */
#endif
