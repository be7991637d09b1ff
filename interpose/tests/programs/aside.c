/* Programs that notice what else is in their process: threads, system calls, stack, the attributes of pages. Under
 * libplanlab.so they print the same as without it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

enum { LAYERS = 40, LAYER = 300000 };

/* A net whose blocks are written to. `call` makes each of its calls. */
static void call_net(void (*call)(void **, size_t)) {
    void *input = NULL, *output = NULL;
    call(&input, LAYER);
    for (int layer = 1; layer <= LAYERS; layer++) {
        call(&output, LAYER + PAGE * (size_t)layer);
        call(&input, 0);
        input = output;
        output = NULL;
    }
    call(&input, 0);
}

/* Requests a block of this many bytes, or frees the block if the size is 0. */
static void directly(void **block, size_t size) {
    if (size) {
        *block = malloc(size);
        memset(*block, 1, size);
    } else {
        errno = ENOTTY;
        free(*block);
        if (errno != ENOTTY)
            puts("free has changed errno");
        *block = NULL;
    }
}

/* Rounds, and time for their plan. */
static void warm_up(void (*call)(void **, size_t)) {
    for (int round = 0; round < 12; round++) {
        call_net(call);
        usleep(round > 2 && round < 8 ? 60000 : 0);
    }
}

static void **volatile asked_block;
static volatile size_t asked_size;
static volatile unsigned calls, one_in;

static void handle(int number) {
    (void)number;
    directly((void **)asked_block, asked_size);
}

/* One call in `one_in` is made by a signal handler. */
static void in_a_handler(void **block, size_t size) {
    if (++calls % one_in) {
        directly(block, size);
        return;
    }
    asked_block = block;
    asked_size = size;
    raise(SIGUSR1);
}

/* Handlers that allocate on a stack of `bytes` bytes with a page below that nobody may touch. */
static void stack(size_t bytes, unsigned share) {
    char *memory = mmap(NULL, PAGE + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory, PAGE, PROT_NONE);
    stack_t own = {.ss_sp = memory + PAGE, .ss_size = bytes};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&own, NULL) || sigaction(SIGUSR1, &action, NULL))
        perror("a stack for signals");
    one_in = share;
    warm_up(in_a_handler);
    for (int round = 0; round < 30; round++)
        call_net(in_a_handler);
    if (getenv("ASIDE_DEPTH")) {
        size_t at = 0;
        while (at < bytes && !memory[PAGE + at])
            at++;
        fprintf(stderr, "%zu of %zu bytes used\n", bytes - at, bytes);
    }
    puts("ok");
}

static long most_threads;

static void count(void *block, size_t size) {
    (void)block;
    (void)size;
    long threads = ++calls % 8 ? 0 : status("Threads:");
    most_threads = threads > most_threads ? threads : most_threads;
}

/* The most threads at any time, as a program counts that warns at a fork with several. */
static void threads(int rounds) {
    long_rounds(rounds, count);
    printf("%ld threads at most\n", most_threads);
}

static unsigned when;

static void leave_users(void *block, size_t size) {
    (void)block;
    (void)size;
    if (++calls == when)
        puts(unshare(CLONE_NEWUSER) ? strerror(errno) : "a name space");
}

/* A name space of its own after this many requests; the kernel refuses it to a process with several threads. */
static void unshares(unsigned requests) {
    when = requests;
    long_rounds(6, leave_users);
}

/* From now on only the kernel's strict set of system calls is allowed, or a filter's. */
static void forbid(const char *how) {
    struct sock_filter allow[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof allow / sizeof *allow, allow};
    int refused;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!strcmp(how, "strict"))
        refused = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    else if (!strcmp(how, "prctl"))
        refused = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
    else if (!strcmp(how, "raw-prctl"))
        refused = (int)syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
    else
        refused = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
    if (refused)
        abort();
}

/* Prepares its memory, forbids itself system calls, and goes on: with the rounds before, with others, with blocks from
 * before. */
static void forbids(const char *how, int rounds) {
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    free(memset(malloc(16 << 20), 1, 16 << 20));
    for (int round = 0; round < rounds; round++) {
        call_net(directly);
        usleep(round > 2 && round < 8 ? 60000 : 0);
    }
    void *before[LAYERS];
    for (int layer = 0; layer < LAYERS; layer++)
        before[layer] = malloc(LAYER + PAGE * (size_t)layer);
    forbid(how);
    for (int layer = 0; layer < LAYERS; layer++)
        free(before[layer]);
    for (int round = 0; round < 20; round++)
        call_net(directly);
    for (size_t size = 1000; size < 3000000; size += 7777) {
        void *block = realloc(memset(malloc(size), 1, size), size * 2);
        free(calloc(3, size));
        free(block);
    }
    if (write(STDOUT_FILENO, "ok\n", 3) != 3)
        abort();
    if (!strcmp(how, "strict"))
        syscall(SYS_exit, 0);
    exit(0);
}

/* Asks whether the kernel knows filters, as browsers do, and goes on. */
static void asks(void) {
    int known = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) && errno == EFAULT;
    known += syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) && errno == EFAULT;
    known += syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) && errno == EFAULT;
    printf("%d\n", known);
    warm_up(directly);
    for (int round = 0; round < 20; round++)
        call_net(directly);
}

enum { LARGE = 12 << 20 };

/* Whether all bytes of a block have this value. */
static int holds(const char *block, char value, size_t size) {
    for (size_t at = 0; at < size; at++)
        if (block[at] != value)
            return 0;
    return 1;
}

/* Large blocks, which are idle from the end of the round on; every second one is zeroed. `pause` is called while one is
 * in use. */
static void large_round(void (*pause)(void)) {
    char *before = NULL;
    for (int layer = 0; layer < 6; layer++) {
        size_t size = LARGE - PAGE * (size_t)layer;
        char *block = layer % 2 ? calloc(1, size) : malloc(size);
        if (layer % 2 && !holds(block, 0, size))
            abort();
        memset(block, layer + 1, size);
        if (layer == 3)
            pause();
        if (before && !holds(before, (char)layer, size))
            abort();
        free(before);
        before = block;
    }
    free(before);
}

static void go_on(void) {
}

/* Lasts some hundred milliseconds, and makes no system call. */
static void compute(void) {
    for (volatile unsigned step = 0; step < 300000000; step++)
        ;
}

static void large_rounds(void) {
    for (int round = 0; round < 14; round++) {
        large_round(go_on);
        usleep(round > 2 && round < 8 ? 60000 : 0);
    }
}

/* The number of children on stderr, if the kernel says so: the library's watching process is one. */
static void print_children(void) {
    char name[64], text[256] = "";
    snprintf(name, sizeof name, "/proc/self/task/%d/children", (int)getpid());
    int file = open(name, O_RDONLY), count = -1;
    if (file >= 0 && read(file, text, sizeof text - 1) >= 0) {
        count = 0;
        for (char *at = text; *at; at++)
            count += *at == ' ';
    }
    close(file);
    fprintf(stderr, "%d children\n", count);
}

/* Forbids itself system calls while its plan's memory is watched, and goes on: with pauses in which nothing is in use,
 * and with some in which a block is. */
static void watched(const char *how) {
    void *kept[4];
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    for (int at = 0; at < 4; at++)
        kept[at] = memset(malloc(20 << 20), 1, 20 << 20);
    for (int at = 0; at < 4; at++)
        free(kept[at]);
    large_rounds();
    print_children();
    forbid(how);
    large_round(compute);
    for (int round = 0; round < 4; round++) {
        large_round(round == 2 ? compute : go_on);
        compute();
    }
    if (write(STDOUT_FILENO, "ok\n", 3) != 3)
        abort();
    if (!strcmp(how, "strict"))
        syscall(SYS_exit, 3);
    _exit(3);
}

/* Begins a name space of processes after some rounds; the first child made from then on leads it. */
static void leads(void) {
    large_rounds();
    usleep(400000);
    puts(unshare(CLONE_NEWUSER | CLONE_NEWPID) ? strerror(errno) : "a name space");
    large_rounds();
    usleep(400000);
    fflush(stdout);
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(getpid() == 1 ? 1 : 2);
    if (child < 0)
        perror("fork");
    waitpid(child, &status, 0);
    printf("%#x\n", status);
}

static int layer_of_call;
static const char *wanted;

/* The whole pages of a block. */
static char *pages_of(char *block, size_t size, size_t *length) {
    char *begin = (char *)(((uintptr_t)block + PAGE - 1) / PAGE * PAGE);
    *length = (size_t)(block + size - begin) / PAGE * PAGE;
    return begin;
}

/* As `directly`; the pages of some blocks are treated in a way that ends when they go back to the kernel. */
static void treating(void **block, size_t size) {
    directly(block, size);
    size_t length;
    if (!size || ++layer_of_call % 7)
        return;
    char *pages = pages_of(*block, size, &length);
    int refused = 0;
    if (!strcmp(wanted, "dont-fork"))
        refused = madvise(pages, length, MADV_DONTFORK);
    else if (!strcmp(wanted, "wipe-on-fork"))
        refused = madvise(pages, length, MADV_WIPEONFORK);
    else if (!strcmp(wanted, "guard"))
        refused = mprotect(pages + length - PAGE, PAGE, PROT_NONE);
    else if (!strcmp(wanted, "read-only"))
        refused = mprotect(pages, length, PROT_READ);
    else if (!strcmp(wanted, "lock"))
        refused = mlock(pages, PAGE);
    else if (!strcmp(wanted, "hole"))
        refused = munmap(pages + length - PAGE, PAGE);
    else if (!strcmp(wanted, "file"))
        refused = mmap(pages, PAGE, PROT_READ, MAP_FIXED | MAP_PRIVATE, 3, 0) == MAP_FAILED;
    else if (!strcmp(wanted, "move"))
        refused = mremap(pages, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED;
    if (refused) {
        perror(wanted);
        exit(1);
    }
}

/* Checks that a block, once written to, holds the same in the child of a fork. */
static void checked(void **block, size_t size) {
    directly(block, size);
    if (!size)
        return;
    memset(*block, 7, size);
    pid_t child = fork();
    if (child == 0) {
        for (size_t at = 0; at < size; at++)
            if (((char *)*block)[at] != 7)
                _exit(1);
        for (int round = 0; round < 2; round++)
            call_net(directly);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status) {
        printf("a child ended with status %#x\n", status);
        exit(1);
    }
}

/* Pages that the kernel has put in until now. */
static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static void treats(const char *how) {
    wanted = how;
    FILE *file = fopen("/proc/self/exe", "r");
    if (!file || dup2(fileno(file), 3) != 3)
        abort();
    mallopt(M_MMAP_THRESHOLD, 64 << 10);
    warm_up(directly);
    for (int round = 0; round < 10; round++)
        call_net(treating);
    for (int round = 0; round < 3; round++)
        call_net(directly);
    long before = faults();
    for (int round = 0; round < 5; round++)
        call_net(directly);
    fprintf(stderr, "%ld faults\n", faults() - before);
    for (int round = 0; round < 3; round++)
        call_net(checked);
    printf("%ld kB are locked\n", status("VmLck:"));
}

int main(int length, char **words) {
    const char *word = length > 1 ? words[1] : "";
    if (!strcmp(word, "stack") && length > 3)
        stack((size_t)atol(words[2]), (unsigned)atoi(words[3]));
    else if (!strcmp(word, "threads"))
        threads(length > 2 ? atoi(words[2]) : 100);
    else if (!strcmp(word, "unshares") && length > 2)
        unshares((unsigned)atoi(words[2]));
    else if (!strcmp(word, "forbids") && length > 3)
        forbids(words[2], atoi(words[3]));
    else if (!strcmp(word, "asks"))
        asks();
    else if (!strcmp(word, "watched") && length > 2)
        watched(words[2]);
    else if (!strcmp(word, "leads"))
        leads();
    else if (!strcmp(word, "treats") && length > 2)
        treats(words[2]);
    else
        return 2;
    return 0;
}
