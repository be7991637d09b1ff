/* Requests memory of GPUs from libplanlab.so for the tests, which it loads as PyTorch does, without a preload. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static void *(*take)(ssize_t, int, void *);
static void (*give)(void *, ssize_t, int, void *);
static void (*share)(void *, void *);
static void (*empty)(void);

enum { MOST = 64 };
static struct block {
    uintptr_t at;
    size_t size;
    int device;
    void *stream;
} live[MOST];

static int asked(size_t size, int device, void *stream) {
    uintptr_t at = (uintptr_t)take((ssize_t)size, device, stream);
    if (!at || at % 512)
        abort();
    int place = -1;
    for (int other = 0; other < MOST; other++) {
        if (!live[other].at)
            place = other;
        else if (live[other].device == device && at < live[other].at + live[other].size && live[other].at < at + size)
            abort();
    }
    live[place] = (struct block){at, size, device, stream};
    return place;
}

static void freed(int place) {
    struct block block = live[place];
    live[place].at = 0;
    give((void *)block.at, (ssize_t)block.size, block.device, block.stream);
}

static void net(int device, void *stream, int layers) {
    int input = asked(1000000, device, stream);
    for (int layer = 1; layer <= layers; layer++) {
        int output = asked(1000000 + 5000 * (size_t)layer, device, stream);
        int workspace = asked(700 + (size_t)layer, device, stream);
        freed(workspace);
        freed(input);
        input = output;
    }
    freed(input);
}

static void rounds(void) {
    void *streams[2] = {NULL, (void *)(uintptr_t)0x5510};
    for (int round = 0; round < 60; round++) {
        for (int which = 0; which < 4; which++)
            net(which / 2, streams[which % 2], 20 + which);
        if (round < 10)
            usleep(100000);
    }
    int shared = asked(4096, 0, streams[0]);
    share((void *)live[shared].at, streams[1]);
    freed(shared);
    empty();
    /* A driver does not work in a child. */
    pid_t child = fork();
    if (child == 0)
        _exit(take(4096, 0, NULL) != NULL);
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        abort();
    puts("ok");
}

static void none(void) {
    for (int device = -1; device < 2; device++)
        for (int again = 0; again < 3; again++)
            if (take(4096, device, NULL))
                abort();
    give(NULL, 0, 0, NULL);
    puts("null");
}

int main(int count, char **words) {
    void *before = dlsym(RTLD_DEFAULT, "malloc");
    void *library = count == 3 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", count == 3 ? dlerror() : "usage");
        return 2;
    }
    *(void **)&take = dlsym(library, "planlab_cuda_malloc");
    *(void **)&give = dlsym(library, "planlab_cuda_free");
    *(void **)&share = dlsym(library, "planlab_cuda_record_stream");
    *(void **)&empty = dlsym(library, "planlab_cuda_empty_cache");
    /* The C library still serves memory of the host. */
    if (!take || !give || !share || !empty || dlsym(RTLD_DEFAULT, "malloc") != before)
        return 3;
    free(memset(malloc(1 << 20), 1, 1 << 20));
    if (!strcmp(words[2], "rounds"))
        rounds();
    else
        none();
    return 0;
}
