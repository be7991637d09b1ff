/* What several of the test programs do: rounds of requests, and a look at what the kernel says of the process. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

/* A chain of blocks that are written as a whole. */
static inline uint64_t net(size_t base, int layers) {
    unsigned char *input = memset(malloc(base), 1, base);
    uint64_t sum = 0;
    for (int layer = 1; layer <= layers; layer++) {
        size_t size = base + PAGE * (size_t)layer;
        unsigned char *output = memset(malloc(size), layer, size);
        sum = sum * 31 + input[base / 2];
        free(input);
        input = output;
    }
    free(input);
    return sum;
}

/* Rounds of many requests, which take long to plan; `each` gets every block. */
static inline void long_rounds(int count, void (*each)(void *, size_t)) {
    enum { REQUESTS = 3000, LIVE = 9 };
    for (int round = 0; round < count; round++) {
        char *blocks[REQUESTS];
        for (int at = 0; at < REQUESTS; at++) {
            size_t size = 30000 + (size_t)at * 7919 % 90000;
            blocks[at] = malloc(size);
            if (at >= LIVE)
                free(blocks[at - LIVE]);
            each(blocks[at], size);
        }
        for (int at = REQUESTS - LIVE; at < REQUESTS; at++)
            free(blocks[at]);
    }
}

/* A number in the kernel's description of this process; sizes are in kB. */
static inline long status(const char *name) {
    char text[8192];
    FILE *file = fopen("/proc/self/status", "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[length] = 0;
    char *line = strstr(text, name);
    if (!line)
        abort();
    fclose(file);
    return strtol(line + strlen(name), NULL, 10);
}
