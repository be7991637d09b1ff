//! The kernels as text: in CUDA C for the run-time compiler, and in PTX for machines that only have a driver.
//!
//! The compiler (NVRTC) is tried first, because it knows the device best. If it is missing, or writes PTX too new for
//! the driver, the PTX below is used, which any device from compute capability 5.2 on understands. The device's name,
//! and so every row, says which one it was.
//!
//! All kernels but `planlab_spin` walk over the words of a block in strides of the grid, 16 bytes per thread at a
//! time, so memory bandwidth limits them. Sums and counts are first added up within a warp.

/// Threads of a block of the grid.
#[cfg(feature = "cuda")]
pub(crate) const THREADS: u32 = 256;

/// The most blocks of the grid for each multiprocessor.
#[cfg(feature = "cuda")]
const BLOCKS: u64 = 8;

/// The kernels' names: fill, sum, verify, spin.
pub(crate) const NAMES: [&std::ffi::CStr; 4] =
    [c"planlab_fill", c"planlab_sum", c"planlab_verify", c"planlab_spin"];

/// The number of blocks of the grid for `words` words.
#[cfg(feature = "cuda")]
pub(crate) fn block_count(words: u64, multiprocessors: u64) -> u32 {
    let most = multiprocessors.max(1) * BLOCKS;
    u32::try_from(words.div_ceil(u64::from(THREADS)).clamp(1, most)).unwrap_or(u32::MAX)
}

/// For NVRTC.
pub(crate) const CUDA_C: &str = r#"
typedef unsigned long long u64;

static __device__ u64 first() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
static __device__ u64 stride() { return (u64)gridDim.x * blockDim.x; }
static __device__ u64 half_of(u64 seed, u64 index) { return (seed + index) * 0x9e3779b97f4a7c15ull; }

static __device__ void add_to(u64 *slot, u64 value) {
    for (int distance = 16; distance > 0; distance >>= 1)
        value += __shfl_down_sync(0xffffffffu, value, distance);
    if ((threadIdx.x & 31) == 0) atomicAdd(slot, value);
}

extern "C" __global__ void planlab_fill(ulonglong2 *at, u64 words, u64 seed) {
    for (u64 i = first(); i < words; i += stride()) {
        u64 half = half_of(seed, i);
        at[i] = make_ulonglong2(half, half + seed);
    }
}

extern "C" __global__ void planlab_sum(const ulonglong2 *at, u64 words, u64 *slot) {
    u64 sum = 0;
    for (u64 i = first(); i < words; i += stride()) {
        ulonglong2 word = at[i];
        sum += word.x + word.y;
    }
    add_to(slot, sum);
}

extern "C" __global__ void planlab_verify(const ulonglong2 *at, u64 words, u64 seed, u64 *slot) {
    u64 wrong = 0;
    for (u64 i = first(); i < words; i += stride()) {
        ulonglong2 word = at[i];
        u64 half = half_of(seed, i);
        wrong += (word.x != half || word.y != half + seed) ? 1 : 0;
    }
    add_to(slot, wrong);
}

extern "C" __global__ void planlab_spin(u64 nanoseconds) {
    u64 begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - begin < nanoseconds);
}
"#;

/// For the driver itself.
pub(crate) const PTX: &str = r"
.version 6.0
.target sm_52
.address_size 64

.visible .entry planlab_fill(.param .u64 at, .param .u64 words, .param .u64 seed)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .b64 %d<8>;
    ld.param.u64 %d0, [at];
    ld.param.u64 %d1, [words];
    ld.param.u64 %d2, [seed];
    cvta.to.global.u64 %d0, %d0;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, %nctaid.x;
    mul.wide.u32 %d3, %r0, %r1;
    cvt.u64.u32 %d4, %r2;
    add.u64 %d3, %d3, %d4;
    mul.wide.u32 %d4, %r3, %r1;
fill_next:
    setp.ge.u64 %p, %d3, %d1;
    @%p bra fill_done;
    add.u64 %d5, %d2, %d3;
    mul.lo.u64 %d5, %d5, -7046029254386353131;
    add.u64 %d6, %d5, %d2;
    shl.b64 %d7, %d3, 4;
    add.u64 %d7, %d0, %d7;
    st.global.v2.u64 [%d7], {%d5, %d6};
    add.u64 %d3, %d3, %d4;
    bra fill_next;
fill_done:
    ret;
}

.visible .entry planlab_sum(.param .u64 at, .param .u64 words, .param .u64 slot)
{
    .reg .pred %p;
    .reg .b32 %r<7>;
    .reg .b64 %d<9>;
    ld.param.u64 %d0, [at];
    ld.param.u64 %d1, [words];
    ld.param.u64 %d2, [slot];
    cvta.to.global.u64 %d0, %d0;
    cvta.to.global.u64 %d2, %d2;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, %nctaid.x;
    mul.wide.u32 %d3, %r0, %r1;
    cvt.u64.u32 %d4, %r2;
    add.u64 %d3, %d3, %d4;
    mul.wide.u32 %d4, %r3, %r1;
    mov.u64 %d5, 0;
sum_next:
    setp.ge.u64 %p, %d3, %d1;
    @%p bra sum_read;
    shl.b64 %d8, %d3, 4;
    add.u64 %d8, %d0, %d8;
    ld.global.v2.u64 {%d6, %d7}, [%d8];
    add.u64 %d5, %d5, %d6;
    add.u64 %d5, %d5, %d7;
    add.u64 %d3, %d3, %d4;
    bra sum_next;
sum_read:
    mov.u32 %r4, 16;
sum_warp:
    mov.b64 {%r5, %r6}, %d5;
    shfl.sync.down.b32 %r5, %r5, %r4, 31, -1;
    shfl.sync.down.b32 %r6, %r6, %r4, 31, -1;
    mov.b64 %d6, {%r5, %r6};
    add.u64 %d5, %d5, %d6;
    shr.u32 %r4, %r4, 1;
    setp.ne.u32 %p, %r4, 0;
    @%p bra sum_warp;
    and.b32 %r5, %r2, 31;
    setp.ne.u32 %p, %r5, 0;
    @%p bra sum_done;
    red.global.add.u64 [%d2], %d5;
sum_done:
    ret;
}

.visible .entry planlab_verify(.param .u64 at, .param .u64 words, .param .u64 seed, .param .u64 slot)
{
    .reg .pred %p;
    .reg .pred %q;
    .reg .b32 %r<7>;
    .reg .b64 %d<12>;
    ld.param.u64 %d0, [at];
    ld.param.u64 %d1, [words];
    ld.param.u64 %d2, [seed];
    ld.param.u64 %d9, [slot];
    cvta.to.global.u64 %d0, %d0;
    cvta.to.global.u64 %d9, %d9;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, %nctaid.x;
    mul.wide.u32 %d3, %r0, %r1;
    cvt.u64.u32 %d4, %r2;
    add.u64 %d3, %d3, %d4;
    mul.wide.u32 %d4, %r3, %r1;
    mov.u64 %d5, 0;
verify_next:
    setp.ge.u64 %p, %d3, %d1;
    @%p bra verify_read;
    shl.b64 %d8, %d3, 4;
    add.u64 %d8, %d0, %d8;
    ld.global.v2.u64 {%d6, %d7}, [%d8];
    add.u64 %d10, %d2, %d3;
    mul.lo.u64 %d10, %d10, -7046029254386353131;
    add.u64 %d11, %d10, %d2;
    setp.ne.u64 %p, %d6, %d10;
    setp.ne.or.u64 %q, %d7, %d11, %p;
    selp.u64 %d6, 1, 0, %q;
    add.u64 %d5, %d5, %d6;
    add.u64 %d3, %d3, %d4;
    bra verify_next;
verify_read:
    mov.u32 %r4, 16;
verify_warp:
    mov.b64 {%r5, %r6}, %d5;
    shfl.sync.down.b32 %r5, %r5, %r4, 31, -1;
    shfl.sync.down.b32 %r6, %r6, %r4, 31, -1;
    mov.b64 %d6, {%r5, %r6};
    add.u64 %d5, %d5, %d6;
    shr.u32 %r4, %r4, 1;
    setp.ne.u32 %p, %r4, 0;
    @%p bra verify_warp;
    and.b32 %r5, %r2, 31;
    setp.ne.u32 %p, %r5, 0;
    @%p bra verify_done;
    red.global.add.u64 [%d9], %d5;
verify_done:
    ret;
}

.visible .entry planlab_spin(.param .u64 nanoseconds)
{
    .reg .pred %p;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [nanoseconds];
    mov.u64 %d2, %globaltimer;
spin_next:
    mov.u64 %d3, %globaltimer;
    sub.u64 %d3, %d3, %d2;
    setp.lt.u64 %p, %d3, %d1;
    @%p bra spin_next;
    ret;
}
";

#[cfg(test)]
mod tests;
