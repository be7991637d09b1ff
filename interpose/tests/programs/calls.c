/* The program that the tests run under libplanlab.so and without. Its output depends only on the contents of its blocks,
 * except that "faults" prints counts of the kernel. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAYERS = 40 };

static uint64_t sum_of(const unsigned char *block, size_t size) {
    uint64_t sum = size;
    for (size_t at = 0; at < size; at += 61)
        sum = sum * 31 + block[at];
    return sum * 31 + block[size - 1];
}

static unsigned char *filled(unsigned char *block, size_t size, unsigned seed) {
    if (!block)
        abort();
    memset(block, (int)(seed * 7 + 1), size);
    block[size - 1] = (unsigned char)seed;
    return block;
}

static unsigned char *aligned(size_t align, size_t size) {
    void *block = NULL;
    if (posix_memalign(&block, align, size) || (uintptr_t)block % align)
        abort();
    return block;
}

/* A net: each layer reads the block of the one before. `odd` is a layer that requests another size. */
static uint64_t net(unsigned scale, int odd) {
    size_t size = 100000 * scale;
    unsigned char *input = filled(malloc(size), size, scale);
    uint64_t sum = 0;
    for (int layer = 1; layer <= LAYERS; layer++) {
        size_t next = 100000 * scale + 3000 * (size_t)layer + (layer == odd ? 50000 : 0);
        unsigned char *output = layer % 3 ? malloc(next) : aligned(64 << (layer % 5), next);
        size_t zeros = 20000 + 100 * (size_t)layer;
        unsigned char *workspace = calloc(1, zeros);
        for (size_t at = 0; at < zeros; at++)
            if (workspace[at])
                abort();
        filled(workspace, zeros, (unsigned)layer);
        filled(output, next, (unsigned)layer);
        sum = sum * 31 + sum_of(input, size) + sum_of(workspace, zeros);
        free(workspace);
        free(input);
        input = output;
        size = next;
    }
    sum = sum * 31 + sum_of(input, size);
    free(input);
    return sum;
}

/* Runs until the plan, which is made in the background, is ready. */
static void warm_up(unsigned scale) {
    for (int round = 0; round < 6; round++) {
        net(scale, 0);
        usleep(round < 4 ? 0 : 300000);
    }
}

static void period(void) {
    warm_up(1);
    for (int round = 0; round < 50; round++)
        printf("%llx\n", (unsigned long long)net(1, 0));
}

static void departure(void) {
    warm_up(1);
    for (int round = 0; round < 30; round++)
        printf("%llx\n", (unsigned long long)net(1, round % 5 == 4 ? 10 : 0));
}

static void sequences(void) {
    for (unsigned scale = 1; scale <= 3; scale++)
        warm_up(scale);
    for (int round = 0; round < 30; round++)
        printf("%llx\n", (unsigned long long)net(1 + (unsigned)(round * round) % 3, 0));
}

/* Page faults of the last rounds. */
static void faults(void) {
    warm_up(1);
    for (int round = 0; round < 100; round++)
        net(1, 0);
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    for (int round = 0; round < 100; round++)
        net(1, 0);
    getrusage(RUSAGE_SELF, &after);
    printf("%ld\n", after.ru_minflt - before.ru_minflt);
}

/* Between two calls of getppid no round makes a system call. */
static void calls(void) {
    warm_up(1);
    for (int round = 0; round < 100; round++)
        net(1, 0);
    getppid();
    for (int round = 0; round < 100; round++)
        net(1, 0);
    getppid();
}

static void reallocs(void) {
    for (int round = 0; round < 40; round++) {
        uint64_t sum = 0;
        for (int block = 0; block < 20; block++) {
            size_t size = 200000 + 1000 * (size_t)block;
            unsigned char *grows = filled(malloc(size), size, (unsigned)block);
            /* From the 20th round on blocks grow that did not before; later they shrink, some to nearly nothing. */
            if (round >= 20) {
                grows = realloc(grows, size + 70000);
                sum += sum_of(grows, size);
                memset(grows + size, block, 70000);
                sum += malloc_usable_size(grows) >= size + 70000;
            }
            if (round >= 30) {
                grows = realloc(grows, size);
                grows = realloc(grows, size - 1000);
                sum += sum_of(grows, size - 1000);
                grows = realloc(grows, 100);
            }
            sum += grows[0] + grows[99];
            free(grows);
        }
        if (round == 10)
            usleep(500000);
        printf("%llx\n", (unsigned long long)sum);
    }
    errno = 0;
    volatile size_t most = SIZE_MAX / 2;
    printf("%d %d\n", malloc(most) == NULL, errno == ENOMEM);
    printf("%d\n", calloc(most, 4) == NULL);
    void *none = &none;
    printf("%d %d\n", posix_memalign(&none, 3, 100000) == EINVAL, none == &none);
    void *paged = valloc(100000), *whole = pvalloc(100000), *huge = memalign(4 << 20, 100000);
    printf("%d\n", ((uintptr_t)paged | (uintptr_t)whole) % 4096 == 0 && (uintptr_t)huge % (4 << 20) == 0);
    free(paged);
    free(whole);
    free(huge);
    free(NULL);
    printf("%d\n", malloc_usable_size(NULL) == 0);
}

/* A ring of threads: each frees the blocks of the one before it. */
enum { THREADS = 8, ROUNDS = 60, BLOCKS = 24 };
static unsigned char *volatile handed[THREADS][BLOCKS];
static pthread_barrier_t barrier;
static uint64_t sums[THREADS];

static size_t size_in_ring(int thread, int block) { return 50000 + 1000 * (size_t)block + 100 * (size_t)thread; }

static void *ring(void *number) {
    int self = (int)(intptr_t)number, before = (self + THREADS - 1) % THREADS;
    for (int round = 0; round < ROUNDS; round++) {
        for (int block = 0; block < BLOCKS; block++) {
            size_t size = size_in_ring(self, block);
            handed[self][block] = filled(malloc(size), size, (unsigned)(self + round + block));
        }
        /* In the first rounds each frees its own, so that plans are made for them. */
        int whose = round < 20 || round % 7 == 0 ? self : before;
        if (round == 18)
            usleep(500000);
        pthread_barrier_wait(&barrier);
        for (int block = 0; block < BLOCKS; block++) {
            unsigned char *given = handed[whose][block];
            sums[self] = sums[self] * 31 + sum_of(given, size_in_ring(whose, block));
            free(given);
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void threads(void) {
    pthread_t all[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (intptr_t thread = 0; thread < THREADS; thread++)
        pthread_create(&all[thread], NULL, ring, (void *)thread);
    for (int thread = 0; thread < THREADS; thread++)
        pthread_join(all[thread], NULL);
    for (int thread = 0; thread < THREADS; thread++)
        printf("%llx\n", (unsigned long long)sums[thread]);
}

/* Threads that end and are replaced, with a block that outlives its thread. */
static void *short_life(void *kept) {
    uint64_t sum = 0;
    for (int round = 0; round < 8; round++) {
        sum = sum * 31 + net(1, 0);
        if (round == 4)
            usleep(100000);
    }
    *(unsigned char **)kept = filled(malloc(100000), 100000, 9);
    return (void *)(uintptr_t)(sum & 0xffffffff);
}

static void ends(void) {
    for (int life = 0; life < 10; life++) {
        pthread_t thread;
        void *sum;
        unsigned char *kept;
        pthread_create(&thread, NULL, short_life, &kept);
        pthread_join(thread, &sum);
        printf("%lx %llx\n", (unsigned long)(uintptr_t)sum, (unsigned long long)sum_of(kept, 100000));
        free(kept);
    }
}

/* A fork in the middle of a planned round; both processes continue with the earlier blocks. */
static void forks(void) {
    warm_up(1);
    fflush(stdout);
    for (int round = 0; round < 10; round++) {
        unsigned char *before = filled(malloc(100000), 100000, 1);
        pid_t child = fork();
        uint64_t sum = 0;
        for (int again = 0; again < 5; again++)
            sum = sum * 31 + net(1, 0);
        sum = sum * 31 + sum_of(before, 100000);
        free(before);
        if (child == 0) {
            printf("child %llx\n", (unsigned long long)sum);
            exit(0);
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || status)
            abort();
        printf("parent %llx\n", (unsigned long long)sum);
        fflush(stdout);
    }
}

/* Forks while other threads are inside of the allocator. */
static volatile int is_over;

static void *busy(void *unused) {
    while (!is_over)
        net(1, 0);
    return unused;
}

static void forks_busy(void) {
    pthread_t all[4];
    for (int thread = 0; thread < 4; thread++)
        pthread_create(&all[thread], NULL, busy, NULL);
    for (int round = 0; round < 40; round++) {
        pid_t child = fork();
        if (child == 0) {
            net(1, 0);
            _exit(7);
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7)
            abort();
    }
    is_over = 1;
    for (int thread = 0; thread < 4; thread++)
        pthread_join(all[thread], NULL);
    puts("ok");
}

static void no_repeat(void) {
    uint64_t state = 1, sum = 0;
    unsigned char *live[32] = {0};
    size_t sizes[32] = {0};
    for (int call = 0; call < 20000; call++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int at = (int)(state >> 59);
        if (live[at])
            sum = sum * 31 + sum_of(live[at], sizes[at]);
        free(live[at]);
        sizes[at] = 4096 + (state >> 40) % 30000;
        live[at] = filled(malloc(sizes[at]), sizes[at], (unsigned)call);
    }
    printf("%llx\n", (unsigned long long)sum);
    for (int at = 0; at < 32; at++)
        free(live[at]);
}

/* Signals come at any time; their handler only counts them. */
static volatile int signals;

static void on_alarm(int number) {
    (void)number;
    signals++;
}

static void handler(void) {
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    ualarm(500, 500);
    warm_up(1);
    uint64_t sum = 0;
    for (int round = 0; round < 200; round++)
        sum = sum * 31 + net(1, 0);
    ualarm(0, 0);
    printf("%llx %d\n", (unsigned long long)sum, signals > 0);
}

void planlab_step(void) __attribute__((weak));

static void marks(void) {
    for (int round = 0; round < 60; round++) {
        if (planlab_step)
            planlab_step();
        if (round == 20)
            usleep(500000);
        printf("%llx\n", (unsigned long long)net(1 + (unsigned)(round % 3), 0));
    }
}

static void after_free(void) {
    warm_up(1);
    for (int round = 0; round < 5; round++) {
        unsigned char *input = filled(malloc(100000), 100000, 1);
        free(input);
        ((volatile unsigned char *)input)[5000] = 1;
        net(1, 0);
    }
}

int main(int count, char **words) {
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {
        {"period", period},       {"departure", departure}, {"sequences", sequences},   {"faults", faults},
        {"calls", calls},         {"reallocs", reallocs},   {"threads", threads},       {"ends", ends},
        {"forks", forks},         {"forks_busy", forks_busy}, {"no_repeat", no_repeat}, {"handler", handler},
        {"marks", marks},         {"after_free", after_free},
    };
    for (size_t at = 0; count == 2 && at < sizeof all / sizeof *all; at++)
        if (!strcmp(words[1], all[at].name)) {
            all[at].run();
            return 0;
        }
    return 2;
}
