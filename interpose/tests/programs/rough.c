/* Programs that use their allocator roughly. Under libplanlab.so they print the same as without it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

static void *rounds(void *base) {
    for (int round = 0; round < 40; round++) {
        net((size_t)base, 40);
        if (round < 15)
            usleep(2000);
    }
    return NULL;
}

/* A library whose constructor waits for a thread that repeats itself. */
__attribute__((constructor)) static void construct(void) {
    if (!getenv("ROUGH_CONSTRUCTS"))
        return;
    pthread_t thread;
    pthread_create(&thread, NULL, rounds, (void *)300000);
    pthread_join(thread, NULL);
}

#ifndef LIBRARY

static void opens(const char *library) {
    setenv("ROUGH_CONSTRUCTS", "1", 1);
    puts(dlopen(library, RTLD_NOW) ? "ok" : dlerror());
}

static void leave(int number) {
    (void)number;
    exit(0);
}

static void *idle(void *unused) {
    pause();
    return unused;
}

/* Calls exit() in a handler that interrupts malloc, as handlers of SIGTERM often do. */
static void exits(size_t least) {
    signal(SIGALRM, leave);
    pthread_t thread;
    pthread_create(&thread, NULL, idle, NULL);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    free(malloc(8192));
    void *blocks[64] = {0};
    ualarm(10000 + now.tv_nsec % 5000, 0);
    for (unsigned at = 0;; at++) {
        free(blocks[at % 64]);
        blocks[at % 64] = malloc(least + (at * 371) % 2000);
    }
}

enum { CROWD = 80 };
static pthread_barrier_t barrier;

static void *one_of_many(void *base) {
    pthread_barrier_wait(&barrier);
    for (int round = 0; round < 12; round++) {
        net((size_t)base, 20);
        usleep(round < 6 ? 500 : 0);
    }
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* Many threads end at once, generation after generation. */
static void generations(void) {
    long before = 0;
    for (int generation = 0; generation < 6; generation++) {
        pthread_t threads[CROWD];
        pthread_barrier_init(&barrier, NULL, CROWD);
        for (int at = 0; at < CROWD; at++)
            pthread_create(&threads[at], NULL, one_of_many, (void *)1000000);
        for (int at = 0; at < CROWD; at++)
            pthread_join(threads[at], NULL);
        if (generation == 1)
            before = status("VmRSS:");
    }
    puts(status("VmRSS:") < before + before / 8 + 10000 ? "ok" : "it grows");
}

/* A buffer of another size before each round, like that of a file being read; in use during the round, or not. */
static void strays(int is_held) {
    unsigned state = 1;
    for (int round = 0; round < 200; round++) {
        state = state * 1103515245 + 12345;
        size_t size = 5000 + (state >> 8) % 60000;
        char *stray = memset(malloc(size), 1, size);
        if (!is_held)
            free(stray);
        net(300000, 40);
        if (is_held)
            free(stray);
        if (round < 15)
            usleep(2000);
    }
}

static void *volatile box;

static void *takes(void *unused) {
    for (int at = 0; at < 1000; at++) {
        while (!box)
            ;
        void *block = box;
        free(block);
        box = NULL;
    }
    return unused;
}

/* A thread that frees, and never allocates. */
static void frees(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, takes, NULL);
    for (int at = 0; at < 1000; at++) {
        box = malloc(1000000);
        while (box)
            ;
    }
    pthread_join(thread, NULL);
}

static void *grow(void *unused) {
    char *block = malloc(100);
    for (int size = 200; size < 3000000; size *= 2)
        block = realloc(block, size);
    free(block);
    return unused;
}

static void grows(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, grow, NULL);
    pthread_join(thread, NULL);
}

static volatile int has_finished;

static void *to_be_cancelled(void *unused) {
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    usleep(50000);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
    for (int at = 0; at < 100000; at++)
        free(malloc(8192));
    has_finished = 1;
    pthread_testcancel();
    return unused;
}

/* A thread that must end at its next cancellation point; malloc is no such point. */
static void cancels(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, to_be_cancelled, NULL);
    usleep(10000);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    puts(has_finished ? "ok" : "malloc is a cancellation point");
}

static void fill(void *block, size_t size) {
    memset(block, 1, size);
}

static void *fill_long_rounds(void *count) {
    long_rounds((int)(size_t)count, fill);
    return NULL;
}

/* Leaves time to plan the first rounds, on a busy machine too. */
static void *fill_after_planning(void *count) {
    long_rounds(5, fill);
    sleep(1);
    return fill_long_rounds(count);
}

/* In the child of a fork, a thread takes over the state of a thread that ended during planning. */
static void forks(void) {
    for (int number = 0; number < 5; number++) {
        pthread_t thread;
        pthread_create(&thread, NULL, fill_long_rounds, (void *)3);
        pthread_join(thread, NULL);
        if (fork() == 0) {
            pthread_create(&thread, NULL, fill_after_planning, (void *)25);
            pthread_join(thread, NULL);
            exit(0);
        }
        wait(NULL);
    }
}

static void *volatile given[8];

/* Frees the blocks that the program has handed it, and allocates more. */
static void serve(int number) {
    (void)number;
    for (int at = 0; at < 8; at++) {
        free(given[at]);
        given[at] = NULL;
    }
    free(memset(malloc(400000), 9, 400000));
}

/* A handler that allocates between the calls of a planned round; the C library forbids it inside of a call. */
static void handles(void) {
    signal(SIGALRM, serve);
    rounds((void *)300000);
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    ualarm(200, 200);
    int is_good = 1;
    for (int round = 0; round < 300; round++) {
        char *before = NULL;
        for (int layer = 0; layer <= 40; layer++) {
            size_t size = 300000 + 4096 * (size_t)layer;
            sigprocmask(SIG_BLOCK, &alarm, NULL);
            char *block = malloc(size);
            sigprocmask(SIG_UNBLOCK, &alarm, NULL);
            memset(block, layer, size);
            sigprocmask(SIG_BLOCK, &alarm, NULL);
            for (size_t at = 0; before && at < size - 4096; at += 999)
                is_good &= before[at] == layer - 1;
            if (layer % 5 == 1 && !given[layer / 5 % 8])
                given[layer / 5 % 8] = before;
            else
                free(before);
            sigprocmask(SIG_UNBLOCK, &alarm, NULL);
            before = block;
        }
        sigprocmask(SIG_BLOCK, &alarm, NULL);
        free(before);
        sigprocmask(SIG_UNBLOCK, &alarm, NULL);
    }
    puts(is_good ? "ok" : "a block was overwritten");
}

int main(int count, char **words) {
    const char *word = count > 1 ? words[1] : "";
    if (!strcmp(word, "opens") && count > 2)
        opens(words[2]);
    else if (!strcmp(word, "exits"))
        exits(atoi(words[2]));
    else if (!strcmp(word, "generations"))
        generations();
    else if (!strcmp(word, "strays"))
        strays(count > 2);
    else if (!strcmp(word, "frees"))
        frees();
    else if (!strcmp(word, "grows"))
        grows();
    else if (!strcmp(word, "cancels"))
        cancels();
    else if (!strcmp(word, "handles"))
        handles();
    else if (!strcmp(word, "forks"))
        forks();
    else
        return 2;
    return 0;
}
#endif
