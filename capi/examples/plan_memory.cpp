// A memory planning pass: gives every value of a program an offset in one arena.
//
// `assignOffsets` is the pass; it uses no exceptions and can be pasted into a compiler as it is. `main` runs it on a CSV
// file of MiniMalloc's form (a header with id, lower, upper, size and perhaps alignment, in any order) and prints the same
// buffers with their offsets:
//
//     c++ -std=c++17 -I capi/include capi/examples/plan_memory.cpp -L target/release -lplanlab_c -o plan_memory
//     LD_LIBRARY_PATH=target/release ./plan_memory buffers.csv [CAPACITY [SECONDS]]

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "planlab.h"

namespace {

// What needs memory: a tensor, a spilled value.
struct Value {
    std::string name;
    std::int64_t begin;         // the operation that writes it first
    std::int64_t end;           // the operation after the last that reads it
    std::uint64_t bytes;
    std::uint64_t alignment = 1;
};

struct Layout {
    std::vector<std::uint64_t> offsets;  // one for each value; empty if there is no plan
    std::uint64_t arenaBytes = 0;
    std::uint64_t lowerBound = 0;        // no layout needs less
    bool isOptimal = false;
    std::string diagnostic;              // why there is no plan, or why planning ended
};

// Offsets for `values` in an arena of `capacity` bytes, or in the smallest that is found within `seconds` if it is 0.
Layout assignOffsets(const std::vector<Value>& values, std::uint64_t capacity, double seconds) {
    std::vector<std::int64_t> lower, upper;
    std::vector<std::uint64_t> sizes, alignments;
    for (const Value& value : values) {
        lower.push_back(value.begin);
        upper.push_back(value.end);
        sizes.push_back(value.bytes);
        alignments.push_back(value.alignment);
    }

    planlab_options options{};
    options.struct_size = sizeof options;
    options.alignments = alignments.data();
    options.capacity = capacity;
    options.time_limit = seconds;

    planlab_result result{};
    result.struct_size = sizeof result;

    Layout layout;
    layout.offsets.resize(values.size());
    const planlab_status status = planlab_plan(values.size(), lower.data(), upper.data(), sizes.data(), &options,
                                               layout.offsets.data(), &result);
    layout.arenaBytes = result.height;
    layout.lowerBound = result.bound;
    layout.isOptimal = status == PLANLAB_OPTIMAL;
    layout.diagnostic = result.message;
    if (status != PLANLAB_OPTIMAL && status != PLANLAB_FEASIBLE) {
        layout.offsets.clear();
        layout.diagnostic = std::string(planlab_status_text(status)) + ": " + result.message;
        if (result.buffer < values.size()) layout.diagnostic += " (" + values[result.buffer].name + ")";
    }
    return layout;
}

std::vector<std::string> fields(const std::string& line) {
    std::vector<std::string> all;
    std::istringstream stream(line);
    for (std::string field; std::getline(stream, field, ',');) all.push_back(field);
    return all;
}

// The next line that is neither empty nor a comment.
bool nextLine(std::istream& in, std::string& line) {
    while (std::getline(in, line)) {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        if (!line.empty() && line.front() != '#') return true;
    }
    return false;
}

bool readValues(const char* file, std::vector<Value>& values) {
    std::ifstream in(file);
    std::string line;
    if (!nextLine(in, line)) return false;
    std::map<std::string, std::size_t> columns;
    for (const std::string& name : fields(line)) columns.emplace(name, columns.size());
    for (const char* needed : {"id", "lower", "upper", "size"}) {
        if (columns.count(needed) == 0) return false;
    }
    while (nextLine(in, line)) {
        std::vector<std::string> row = fields(line);
        row.resize(columns.size());
        Value value{row[columns["id"]], std::atoll(row[columns["lower"]].c_str()),
                    std::atoll(row[columns["upper"]].c_str()),
                    std::strtoull(row[columns["size"]].c_str(), nullptr, 10)};
        if (columns.count("alignment") != 0 && !row[columns["alignment"]].empty()) {
            value.alignment = std::strtoull(row[columns["alignment"]].c_str(), nullptr, 10);
        }
        values.push_back(value);
    }
    return true;
}

}  // namespace

int main(int count, char** words) {
    std::vector<Value> values;
    if (planlab_abi_version() != PLANLAB_ABI_VERSION) {
        std::cerr << "libplanlab_c has another version than planlab.h\n";
        return 2;
    }
    if (count < 2 || !readValues(words[1], values)) {
        std::cerr << "usage: plan_memory FILE.csv [CAPACITY [SECONDS]]; columns id, lower, upper, size, alignment\n";
        return 2;
    }
    const std::uint64_t capacity = count > 2 ? std::strtoull(words[2], nullptr, 10) : 0;
    const Layout layout = assignOffsets(values, capacity, count > 3 ? std::atof(words[3]) : 1.0);
    if (layout.offsets.size() != values.size()) {
        std::cerr << layout.diagnostic << "\n";
        return 3;
    }
    std::cout << "id,lower,upper,size,offset\n";
    for (std::size_t i = 0; i < values.size(); ++i) {
        const Value& value = values[i];
        std::cout << value.name << ',' << value.begin << ',' << value.end << ',' << value.bytes << ','
                  << layout.offsets[i] << '\n';
    }
    std::cerr << "height " << layout.arenaBytes << " bound " << layout.lowerBound
              << (layout.isOptimal ? " optimal" : " feasible") << " (" << layout.diagnostic << ")\n";
    return 0;
}
