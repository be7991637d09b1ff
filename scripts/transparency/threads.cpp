// Runs 64 threads that free each other's blocks; prints a checksum of the blocks' contents.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

constexpr int kThreads = 64;
constexpr int kRounds = 60;

struct Block {
    std::unique_ptr<unsigned char[]> bytes;
    size_t size = 0;
    unsigned char value = 0;
};

// One slot per thread: its owner puts a block in, its neighbour takes it out.
std::atomic<Block *> slots[kThreads];

uint64_t Check(const Block &block) {
    for (size_t at = 0; at < block.size; at += 509)
        if (block.bytes[at] != block.value) std::abort();
    return block.size * 31 + block.value;
}

uint64_t Work(int self) {
    uint64_t sum = 0;
    for (int round = 0; round < kRounds; round++) {
        std::vector<Block> own;
        for (int layer = 0; layer < 20; layer++) {
            Block block;
            block.size = 4096 + 3001 * static_cast<size_t>(layer) + 17 * static_cast<size_t>(self);
            block.value = static_cast<unsigned char>(self + layer);
            block.bytes.reset(new unsigned char[block.size]);
            std::memset(block.bytes.get(), block.value, block.size);
            own.push_back(std::move(block));
            if (own.size() > 2) {
                sum += Check(own.front());
                if (layer % 4 == 0) {
                    Block *given = new Block(std::move(own.front()));
                    delete slots[self].exchange(given);
                }
                own.erase(own.begin());
            }
        }
        if (Block *taken = slots[(self + 1) % kThreads].exchange(nullptr)) {
            Check(*taken);
            delete taken;
        }
        for (const Block &block : own) sum += Check(block);
    }
    return sum;
}

int main() {
    std::vector<std::thread> threads;
    std::vector<uint64_t> sums(kThreads);
    for (int self = 0; self < kThreads; self++)
        threads.emplace_back([self, &sums] { sums[self] = Work(self); });
    for (std::thread &thread : threads) thread.join();
    uint64_t sum = 0;
    for (uint64_t each : sums) sum = sum * 1000003 + each;
    for (auto &slot : slots) delete slot.exchange(nullptr);
    std::printf("%llx\n", static_cast<unsigned long long>(sum));
}
