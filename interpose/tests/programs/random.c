/* Random calls of several threads against a model. Every block must be disjoint from all live blocks and have the
 * requested size and alignment. It must keep its contents to its last usable byte until some thread frees it. Repeating
 * rounds come in between, so that plans are made and left. `random SEED THREADS STEPS` prints "ok", or the error. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 160, MOST_THREADS = 16 };

struct block {
    unsigned char *at;
    size_t size;
    uint64_t seed;
    int is_taken;
};
/* All threads share the slots; any thread may free a block in one. */
static struct block slots[SLOTS];
static pthread_mutex_t model = PTHREAD_MUTEX_INITIALIZER;
static uint64_t first_seed;
static int steps;

static uint64_t next(uint64_t *state) {
    *state += 0x9e3779b97f4a7c15u;
    uint64_t x = (*state ^ (*state >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void fail(const char *what, const void *at, size_t size) {
    fprintf(stderr, "%s: %p, %zu bytes\n", what, at, size);
    abort();
}

/* Large blocks are written and read at their ends and every 256 bytes. */
static size_t step_of(size_t size) { return size > 8192 ? 256 : 1; }

static void fill(unsigned char *at, size_t size, uint64_t seed) {
    for (size_t byte = 0; byte < size; byte += step_of(size))
        at[byte] = (unsigned char)(seed + byte / step_of(size));
    if (size)
        at[size - 1] = (unsigned char)seed;
}

static void check(const unsigned char *at, size_t size, size_t of, uint64_t seed) {
    for (size_t byte = 0; byte < size; byte += step_of(of))
        if (byte != of - 1 && at[byte] != (unsigned char)(seed + byte / step_of(of)))
            fail("contents", at + byte, of);
    if (size == of && size && at[size - 1] != (unsigned char)seed)
        fail("last byte", at, of);
}

/* Adds a block to the model, with all its usable bytes. */
static size_t enter(struct block *slot, unsigned char *at, size_t size, size_t align, uint64_t seed) {
    size_t usable = malloc_usable_size(at);
    if (!at || usable < size || (uintptr_t)at % align)
        fail("size or alignment", at, size);
    pthread_mutex_lock(&model);
    for (int other = 0; other < SLOTS; other++)
        if (slots[other].at && at < slots[other].at + slots[other].size && slots[other].at < at + usable)
            fail("overlap", at, size);
    *slot = (struct block){at, usable, seed, 1};
    pthread_mutex_unlock(&model);
    fill(at, usable, seed);
    return usable;
}

static unsigned char *request(uint64_t *state, size_t *size, size_t *align) {
    static const size_t scales[] = {64, 4000, 20000, 200000, 1 << 20};
    uint64_t what = next(state);
    *size = 1 + next(state) % scales[what % 5];
    *align = 16;
    void *block = NULL;
    switch ((what >> 8) % 6) {
    case 0: {
        unsigned char *zeros = calloc(1, *size);
        for (size_t byte = 0; zeros && byte < *size; byte++)
            if (zeros[byte])
                fail("calloc", zeros, *size);
        return zeros;
    }
    case 1:
        *align = (size_t)16 << (what >> 16) % 9;
        if (posix_memalign(&block, *align, *size))
            fail("posix_memalign", NULL, *size);
        return block;
    case 2:
        *align = (size_t)16 << (what >> 16) % 9;
        *size = (*size + *align - 1) / *align * *align;
        return aligned_alloc(*align, *size);
    default:
        return malloc(*size);
    }
}

/* Takes a slot that no other thread works on. */
static struct block *take(uint64_t *state) {
    struct block *slot = NULL;
    pthread_mutex_lock(&model);
    for (int tries = 0; !slot && tries < 8; tries++) {
        struct block *one = &slots[next(state) % SLOTS];
        if (!one->is_taken) {
            one->is_taken = 1;
            slot = one;
        }
    }
    pthread_mutex_unlock(&model);
    return slot;
}

static void release(struct block *slot) {
    pthread_mutex_lock(&model);
    slot->is_taken = 0;
    pthread_mutex_unlock(&model);
}

/* Removes the block from the model; the program still has it. */
static struct block leave(struct block *slot) {
    pthread_mutex_lock(&model);
    struct block block = *slot;
    slot->at = NULL;
    pthread_mutex_unlock(&model);
    check(block.at, block.size, block.size, block.seed);
    return block;
}

static void one_call(uint64_t *state) {
    struct block *slot = take(state);
    if (!slot)
        return;
    uint64_t seed = next(state);
    size_t size, align;
    if (!slot->at) {
        unsigned char *at = request(state, &size, &align);
        enter(slot, at, size, align, seed);
    } else if (seed % 4) {
        free(leave(slot).at);
    } else {
        struct block block = leave(slot);
        size = 1 + seed % (2 * block.size + 1);
        unsigned char *moved = realloc(block.at, size);
        if (!moved)
            fail("realloc", block.at, size);
        check(moved, size < block.size ? size : block.size, block.size, block.seed);
        enter(slot, moved, size, 16, seed);
    }
    release(slot);
}

/* A repeating round; another thread may free one of its blocks. */
static void repeat(uint64_t shape, uint64_t *state) {
    for (int times = 0; times < 8; times++) {
        unsigned char *live[40];
        size_t sizes[40];
        uint64_t sequence = shape;
        for (int layer = 0; layer < 40; layer++) {
            sizes[layer] = 5000 + next(&sequence) % 60000;
            live[layer] = malloc(sizes[layer]);
            fill(live[layer], sizes[layer], shape + (uint64_t)layer);
            if (layer >= 3) {
                check(live[layer - 3], sizes[layer - 3], sizes[layer - 3], shape + (uint64_t)layer - 3);
                free(live[layer - 3]);
            }
        }
        struct block *slot = next(state) % 4 ? NULL : take(state);
        for (int layer = 37; layer < 40; layer++) {
            check(live[layer], sizes[layer], sizes[layer], shape + (uint64_t)layer);
            if (layer == 38 && slot && !slot->at)
                enter(slot, live[layer], sizes[layer], 16, next(state));
            else
                free(live[layer]);
        }
        if (slot)
            release(slot);
        if (times == 3)
            usleep(3000);
    }
}

static void *work(void *number) {
    uint64_t state = first_seed * 1000 + (uint64_t)(uintptr_t)number;
    uint64_t shape = state;
    for (int step = 0; step < steps; step++) {
        uint64_t what = next(&state);
        if (what % 64 == 0)
            shape = first_seed + what / 64 % 3;
        if (what % 128 < 2)
            repeat(shape, &state);
        else
            one_call(&state);
    }
    return NULL;
}

int main(int count, char **words) {
    if (count != 4)
        return 2;
    first_seed = strtoull(words[1], NULL, 10);
    int threads = atoi(words[2]);
    steps = atoi(words[3]);
    if (threads < 1 || threads > MOST_THREADS)
        return 2;
    /* Twice, so that new threads take over what the old ones left. */
    for (int again = 0; again < 2; again++) {
        pthread_t all[MOST_THREADS];
        for (intptr_t thread = 0; thread < threads; thread++)
            pthread_create(&all[thread], NULL, work, (void *)(thread + 100 * again));
        for (int thread = 0; thread < threads; thread++)
            pthread_join(all[thread], NULL);
    }
    for (int slot = 0; slot < SLOTS; slot++)
        if (slots[slot].at)
            free(leave(&slots[slot]).at);
    puts("ok");
    return 0;
}
