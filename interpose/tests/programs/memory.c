/* Programs whose memory is easily wasted. They print the same under libplanlab.so as without it, and on stderr the most
 * memory that they had and what they have in the end, in KiB: "memory: PEAK FINAL". */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

enum { MIB = 1 << 20 };

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Writes to the given number of places of a block, which differ from call to call if `moves`; returns their sum. */
static uint64_t touch(unsigned char *block, size_t size, int places, uint64_t seed, int moves) {
    static uint64_t calls;
    uint64_t state = seed + (moves ? calls++ << 20 : 0), again = state, sum = 0;
    for (int place = 0; place < places; place++)
        block[next(&state) % size] = (unsigned char)place;
    for (int place = 0; place < places; place++)
        sum = sum * 31 + block[next(&again) % size];
    return sum;
}

static int is_zero_at(const unsigned char *block, size_t size, int places, uint64_t seed) {
    uint64_t state = seed;
    for (int place = 0; place < places; place++)
        if (block[next(&state) % size])
            return 0;
    return 1;
}

/* Rounds with a large block of which little is used. */
static void sparse(int is_zeroed, size_t size, int moves) {
    uint64_t sum = 0;
    for (int round = 0; round < 60; round++) {
        unsigned char *block = is_zeroed ? calloc(1, size) : malloc(size);
        if (is_zeroed && !is_zero_at(block, size, 500, (uint64_t)round))
            abort();
        sum = sum * 31 + touch(block, size, 300, 7, moves);
        sum = sum * 31 + net(100000, 20);
        free(block);
        usleep(round < 10 ? 20000 : 0);
    }
    printf("%llx\n", (unsigned long long)sum);
}

/* Rounds with zeroed blocks that are used as a whole, and in the end hardly at all. */
static void zeroed(size_t size) {
    for (int round = 0; round < 60; round++) {
        unsigned char *block = calloc(1, size);
        for (size_t at = 0; at < size; at += 61)
            if (block[at])
                abort();
        memset(block, 1, round < 40 ? size : PAGE);
        printf("%llx\n", (unsigned long long)net(100000, 20));
        free(block);
        usleep(round < 10 ? 20000 : 0);
    }
}

static int count_entries(const char *folder) {
    DIR *entries = opendir(folder);
    int count = 0;
    while (entries && readdir(entries))
        count++;
    closedir(entries);
    return count;
}

/* Rounds that stop; then the program waits for the given number of seconds, and makes no request. It looks for what it
 * has not made itself: threads, children and files. */
static void idle(size_t base, unsigned seconds) {
    uint64_t sum = 0;
    for (int round = 0; round < 30; round++) {
        for (int part = 0; part < 2; part++)
            sum = sum * 31 + net(base, 2);
        usleep(round < 10 ? 20000 : 0);
    }
    printf("%llx\n", (unsigned long long)sum);
    int child = wait(NULL);
    printf("%d %d %d %d\n", child, errno == ECHILD, count_entries("/proc/self/task"), count_entries("/proc/self/fd"));
    fflush(stdout);
    sleep(seconds);
}

static pthread_barrier_t barrier;

static void *iterates(void *number) {
    uint64_t sum = 0;
    pthread_barrier_wait(&barrier);
    for (int round = 0; round < 40; round++) {
        sum = sum * 31 + net(40000 + 64 * (size_t)number, 10);
        usleep(round < 10 ? 5000 : 0);
    }
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return (void *)(uintptr_t)sum;
}

static void *is_random(void *number) {
    enum { LIVE = 8, CALLS = 60000 };
    uint64_t state = (uint64_t)number, sum = 0;
    unsigned char *blocks[LIVE] = {0};
    pthread_barrier_wait(&barrier);
    for (int call = 0; call < CALLS; call++) {
        int at = (int)(next(&state) % LIVE);
        size_t size = PAGE + next(&state) % 20000;
        free(blocks[at]);
        blocks[at] = malloc(size);
        blocks[at][0] = (unsigned char)call;
        sum = sum * 31 + blocks[at][0];
    }
    for (int at = 0; at < LIVE; at++)
        free(blocks[at]);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return (void *)(uintptr_t)sum;
}

static void print_memory(void) {
    long final = status("VmRSS:");
    fprintf(stderr, "memory: %ld %ld\n", status("VmHWM:"), final);
}

/* The memory is printed while all threads have ended their work and still live. */
static void crowd(void *(*run)(void *), int count) {
    pthread_t threads[512];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    pthread_barrier_init(&barrier, NULL, (unsigned)count + 1);
    for (int at = 0; at < count; at++)
        pthread_create(&threads[at], &small, run, (void *)(uintptr_t)(at + 1));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    print_memory();
    pthread_barrier_wait(&barrier);
    uint64_t sum = 0;
    for (int at = 0; at < count; at++) {
        void *one;
        pthread_join(threads[at], &one);
        sum = sum * 31 + (uintptr_t)one;
    }
    printf("%llx\n", (unsigned long long)sum);
}

int main(int count, char **words) {
    const char *word = count > 1 ? words[1] : "";
    size_t size = (size_t)(count > 2 ? atoi(words[2]) : 0);
    if (!strcmp(word, "sparse_calloc"))
        sparse(1, size * MIB, 0);
    else if (!strcmp(word, "sparse_malloc"))
        sparse(0, size * MIB, 0);
    else if (!strcmp(word, "moving_malloc"))
        sparse(0, size * MIB, 1);
    else if (!strcmp(word, "zeroed"))
        zeroed(size * MIB);
    else if (!strcmp(word, "idle") && count > 4)
        for (int time = 0; time < atoi(words[4]); time++)
            idle(size * MIB, (unsigned)atoi(words[3]));
    else if (!strcmp(word, "iterate"))
        crowd(iterates, (int)size);
    else if (!strcmp(word, "random"))
        crowd(is_random, (int)size);
    else
        return 2;
    if (strcmp(word, "iterate") && strcmp(word, "random"))
        print_memory();
    return 0;
}
