// Times the pass of capi/examples/plan_memory.cpp on a CSV file of MiniMalloc's form: `plan_calls FILE.csv CAPACITY CALLS`
// prints the height, then the nanoseconds of each call, a line each. scripts/bench-c runs it beside plan_calls.rs.

#define main example_main
#include "../examples/plan_memory.cpp"
#undef main

#include <chrono>

int main(int count, char** words) {
    std::vector<Value> values;
    if (count != 4 || !readValues(words[1], values)) {
        std::cerr << "usage: plan_calls FILE.csv CAPACITY CALLS\n";
        return 2;
    }
    const std::uint64_t capacity = std::strtoull(words[2], nullptr, 10);
    for (int call = 0, calls = std::atoi(words[3]); call < calls; ++call) {
        const auto begin = std::chrono::steady_clock::now();
        const Layout layout = assignOffsets(values, capacity, 60.0);
        const auto end = std::chrono::steady_clock::now();
        if (layout.offsets.size() != values.size()) {
            std::cerr << layout.diagnostic << "\n";
            return 3;
        }
        if (call == 0) std::cout << layout.arenaBytes << '\n';
        std::cout << std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count() << '\n';
    }
    return 0;
}
