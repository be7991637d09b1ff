// Random calls, fair and foul, with every array at the edge of a page behind which nothing may be touched. Each plan is
// checked pair by pair. Usage: fenced CALLS SEED; prints how many calls had which status.

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "planlab.h"

namespace {

// Memory for `count` values that ends where a page ends that can be neither read nor written.
template <typename T>
class Fenced {
public:
    explicit Fenced(std::size_t count) {
        const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        const std::size_t bytes = count * sizeof(T);
        length_ = (bytes + page - 1) / page * page + page;
        base_ = static_cast<char*>(mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        if (base_ == MAP_FAILED || mprotect(base_ + length_ - page, page, PROT_NONE) != 0) std::abort();
        data_ = reinterpret_cast<T*>(base_ + length_ - page - bytes);
    }
    Fenced(const Fenced&) = delete;
    Fenced& operator=(const Fenced&) = delete;
    ~Fenced() { munmap(base_, length_); }
    T* data() { return data_; }
    T& operator[](std::size_t i) { return data_[i]; }

private:
    char* base_;
    std::size_t length_;
    T* data_;
};

using Random = std::mt19937_64;

std::uint64_t below(Random& random, std::uint64_t limit) { return random() % limit; }
bool one_in(Random& random, std::uint64_t n) { return below(random, n) == 0; }

constexpr std::uint64_t kUntouched = 0xdeadbeefdeadbeef;

[[noreturn]] void fail(const char* what, std::uint64_t number) {
    std::printf("call %llu: %s\n", static_cast<unsigned long long>(number), what);
    std::exit(1);
}

struct Call {
    Call(Random& random, std::size_t count)
        : count(count), lower(count), upper(count), sizes(count), alignments(count), pins(count), offsets(count),
          options(1), result(1) {
        const bool foul = one_in(random, 3);
        for (std::size_t i = 0; i < count; ++i) {
            const bool bad = foul && one_in(random, 10);
            lower[i] = bad ? static_cast<std::int64_t>(random()) : static_cast<std::int64_t>(below(random, 40));
            upper[i] = bad ? static_cast<std::int64_t>(random())
                           : lower[i] + 1 + static_cast<std::int64_t>(below(random, 12));
            sizes[i] = bad ? -below(random, 2) : 1 + below(random, 200);
            alignments[i] = bad ? -below(random, 2) : 1 + below(random, 16);
            pins[i] = one_in(random, 12) ? static_cast<std::int64_t>(below(random, 300) * alignments[i]) : -1;
            if (bad && one_in(random, 4)) pins[i] = static_cast<std::int64_t>(random());
            offsets[i] = kUntouched;
        }
        std::memset(options.data(), 0, sizeof(planlab_options));
        std::memset(result.data(), 0, sizeof(planlab_result));
        options[0].struct_size = sizeof(planlab_options);
        result[0].struct_size = sizeof(planlab_result);
        options[0].time_limit = 0.01;
        options[0].threads = static_cast<std::uint32_t>(1 + below(random, 2));
        options[0].seed = random();
        if (one_in(random, 2)) options[0].alignments = alignments.data();
        if (one_in(random, 3)) options[0].pins = pins.data();
        if (one_in(random, 3)) options[0].capacity = 1 + below(random, 2000);
        if (one_in(random, 2)) options[0].planner = "best-fit";
        if (foul) spoil(random);
    }

    void spoil(Random& random) {
        switch (below(random, 8)) {
            case 0: options[0].time_limit = std::numeric_limits<double>::quiet_NaN(); break;
            case 1: options[0].time_limit = -std::ldexp(1.0, static_cast<int>(below(random, 1000))); break;
            case 2: options[0].threads = static_cast<std::uint32_t>(random() | 0x10000); break;
            case 3: options[0].flags = static_cast<std::uint32_t>(random()); break;
            // Sizes between that of the struct and 4096 are a promise, which would be broken here.
            case 4: options[0].struct_size = one_in(random, 2) ? below(random, sizeof(planlab_options)) : random() | 4097; break;
            case 5: options[0].planner = "best-fat"; break;
            default: break;
        }
    }

    planlab_status run() {
        return planlab_plan(count, lower.data(), upper.data(), sizes.data(), options.data(), offsets.data(),
                            result.data());
    }

    void check(planlab_status status, std::uint64_t number) {
        if (std::strlen(planlab_status_text(status)) == 0) fail("a status without a text", number);
        if (std::memchr(result[0].message, 0, sizeof result[0].message) == nullptr) fail("an endless message", number);
        const bool planned = status == PLANLAB_OPTIMAL || status == PLANLAB_FEASIBLE;
        std::uint64_t height = 0;
        for (std::size_t i = 0; i < count; ++i) {
            if (!planned) {
                if (offsets[i] != kUntouched) fail("offsets without a plan", number);
                continue;
            }
            if (offsets[i] + sizes[i] < offsets[i]) fail("an end past 2^64", number);
            if (offsets[i] + sizes[i] > height) height = offsets[i] + sizes[i];
            if (options[0].alignments != nullptr && offsets[i] % alignments[i] != 0) fail("an alignment is broken", number);
            if (options[0].pins != nullptr && pins[i] >= 0 && offsets[i] != static_cast<std::uint64_t>(pins[i]))
                fail("a pin is broken", number);
            for (std::size_t j = 0; j < i; ++j) {
                const bool together = lower[i] < upper[j] && lower[j] < upper[i];
                if (together && offsets[i] < offsets[j] + sizes[j] && offsets[j] < offsets[i] + sizes[i])
                    fail("an overlap", number);
            }
        }
        if (height != result[0].height) fail("another height than that of the offsets", number);
        if (planned && result[0].bound > height) fail("a bound above the height", number);
        if (planned && options[0].capacity != 0 && height > options[0].capacity) fail("above the capacity", number);
        if (status == PLANLAB_OPTIMAL && result[0].bound != height) fail("optimal, but not proved", number);
    }

    std::size_t count;
    Fenced<std::int64_t> lower, upper;
    Fenced<std::uint64_t> sizes, alignments;
    Fenced<std::int64_t> pins;
    Fenced<std::uint64_t> offsets;
    Fenced<planlab_options> options;
    Fenced<planlab_result> result;
};

}  // namespace

int main(int words, char** word) {
    if (words != 3) return 2;
    const std::uint64_t calls = std::strtoull(word[1], nullptr, 10);
    Random random(std::strtoull(word[2], nullptr, 10));
    std::map<int, std::uint64_t> seen;
    for (std::uint64_t number = 0; number < calls; ++number) {
        Call call(random, static_cast<std::size_t>(below(random, 30)));
        const planlab_status status = call.run();
        call.check(status, number);
        ++seen[status];
    }
    for (const auto& [status, times] : seen) {
        std::printf("%d %llu\n", status, static_cast<unsigned long long>(times));
    }
    return 0;
}
