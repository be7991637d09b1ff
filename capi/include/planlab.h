/*
 * planlab: an offset for every buffer of a program, so that buffers that are live at one step never overlap and the
 * arena is as small as can be.
 *
 *     planlab_options options = {.struct_size = sizeof options, .time_limit = 1.0};
 *     planlab_result result = {.struct_size = sizeof result};
 *     planlab_status status = planlab_plan(count, lower, upper, sizes, &options, offsets, &result);
 *     if (status == PLANLAB_OPTIMAL || status == PLANLAB_FEASIBLE)
 *         arena = malloc(result.height);
 *
 * All of it may be called from any thread, from several at once. Nothing is kept between calls, nothing is printed, and
 * every plan has passed a verifier that shares nothing with the planners. A call may start threads, which end with it. If
 * memory runs out, the process ends.
 *
 * Link with -lplanlab_c; with the static library also -lpthread -ldl -lm.
 */

#ifndef PLANLAB_H
#define PLANLAB_H

/* Generated from capi/src; `PLANLAB_BLESS=1 cargo test --package planlab-capi --test it -- header` writes it anew. */

#include <stddef.h>
#include <stdint.h>

/**
 * The version of this interface. It counts up when a program that was compiled with an older header would no longer
 * work; structs grow at their end without it (see struct_size).
 */
#define PLANLAB_ABI_VERSION 1

/**
 * Bytes of planlab_result.message, the terminating 0 included.
 */
#define PLANLAB_MESSAGE_SIZE 256

/**
 * What came of a call. Negative: the question was wrong or could not be answered, and nothing is written to offsets.
 */
enum planlab_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * There is a plan, and it is proved that none is lower.
     */
    PLANLAB_OPTIMAL = 0,
    /**
     * There is a plan. A lower one may exist: no planner proved otherwise within the limits, or the plan fits the
     * capacity, which is all that was asked for.
     */
    PLANLAB_FEASIBLE = 1,
    /**
     * It is proved that no plan fits the capacity. Nothing is written to offsets.
     */
    PLANLAB_INFEASIBLE = 2,
    /**
     * No plan (that fits the capacity) was found within the limits. Nothing is written to offsets.
     */
    PLANLAB_UNKNOWN = 3,
    /**
     * A pointer that must not be null is null.
     */
    PLANLAB_ERROR_NULL = -1,
    /**
     * A pointer is not aligned for what it points to.
     */
    PLANLAB_ERROR_MISALIGNED = -2,
    /**
     * A struct_size is smaller than the struct of version 1, or so large that it cannot be a size.
     */
    PLANLAB_ERROR_STRUCT_SIZE = -3,
    /**
     * An option is out of its range, or one that this version of the library does not know is not 0.
     */
    PLANLAB_ERROR_OPTION = -4,
    /**
     * There is no planner of that key.
     */
    PLANLAB_ERROR_PLANNER = -5,
    /**
     * A buffer is never live, has no bytes, an alignment of 0 or an impossible pin, or the sizes do not fit 64 bits.
     */
    PLANLAB_ERROR_BUFFER = -6,
    /**
     * There are more than 2^32 - 1 buffers.
     */
    PLANLAB_ERROR_TOO_MANY = -7,
    /**
     * The planner cannot honour alignments or pins.
     */
    PLANLAB_ERROR_UNSUPPORTED = -8,
    /**
     * The planner failed. This is a fault of the library, or of a machine that has no thread to spare.
     */
    PLANLAB_ERROR_FAILED = -9,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum planlab_status planlab_status;
#else
typedef int32_t planlab_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Limits and wishes. Set struct_size and leave all else 0 for the defaults:
 * `planlab_options options = {.struct_size = sizeof options};`
 */
typedef struct planlab_options {
    /**
     * sizeof(planlab_options). Later versions of the library add fields at the end; the size says which fields exist.
     */
    size_t struct_size;
    /**
     * What each offset has to be a multiple of, in bytes: count numbers, not only powers of two. Null: 1 for all.
     */
    const uint64_t *alignments;
    /**
     * Fixed offsets in bytes: count numbers, -1 where a buffer may lie anywhere. Null: no buffer has one.
     */
    const int64_t *pins;
    /**
     * The arena's size in bytes, if it is given: planning ends with the first plan that fits it. 0: the lowest plan
     * is looked for.
     */
    uint64_t capacity;
    /**
     * Wall time in seconds. 0: 10 seconds. INFINITY: until a plan is proved optimal, which may take for ever.
     */
    double time_limit;
    /**
     * Work in the planner's own steps. With one thread and time enough, equal questions with an equal work limit have
     * equal answers on every machine. 0: no limit.
     */
    uint64_t work_limit;
    /**
     * What random choices depend on.
     */
    uint64_t seed;
    /**
     * The planner's key, a string of UTF-8 that ends with 0: "portfolio", "best-fit", ... Null: "portfolio", which tries
     * greedy planners first and then searches until the limits are reached or a plan is proved optimal.
     */
    const char *planner;
    /**
     * Threads that the planner may use, 1,024 at most. 0: one for each processor.
     */
    uint32_t threads;
    /**
     * Has to be 0.
     */
    uint32_t flags;
} planlab_options;

/**
 * What is known after a call. Set struct_size before it: `planlab_result result = {.struct_size = sizeof result};`
 */
typedef struct planlab_result {
    /**
     * sizeof(planlab_result). No byte beyond this size is written.
     */
    size_t struct_size;
    /**
     * The size of the arena that the plan needs, in bytes; 0 if there is no plan.
     */
    uint64_t height;
    /**
     * No plan needs less than this, in bytes. 0 after an error.
     */
    uint64_t bound;
    /**
     * The most bytes that are live at one step. 0 after an error.
     */
    uint64_t load;
    /**
     * Wall time of the call in seconds.
     */
    double seconds;
    /**
     * The buffer that an error is about, counted from 0; UINT64_MAX if it is about none.
     */
    uint64_t buffer;
    /**
     * What is wrong, or why planning ended, in English; UTF-8 that ends with 0.
     */
    char message[PLANLAB_MESSAGE_SIZE];
} planlab_result;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the interface that the library has; compare it with PLANLAB_ABI_VERSION, which is the header's.
 */
uint32_t planlab_abi_version(void);

/**
 * A status in words: English, for ever valid, never null; also for numbers that are no status.
 */
const char *planlab_status_text(int status);

/**
 * Gives each of count buffers an offset.
 *
 * Buffer i is live at the steps lower[i] <= step < upper[i] and has sizes[i] bytes. Steps are any numbers that are in
 * order: operations, or nanoseconds. If there is a plan, offsets[i] is where buffer i begins in the arena, in bytes;
 * else nothing is written to offsets.
 *
 * options and result may be null. The arrays may be null if count is 0. They have to hold count numbers, and nobody
 * may write to them during the call; offsets may be one of them.
 */
planlab_status planlab_plan(size_t count,
                            const int64_t *lower,
                            const int64_t *upper,
                            const uint64_t *sizes,
                            const struct planlab_options *options,
                            uint64_t *offsets,
                            struct planlab_result *result);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PLANLAB_H */
