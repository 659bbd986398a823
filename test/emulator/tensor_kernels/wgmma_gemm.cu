// A warp-specialised GEMM as Hopper wants it, right and with planted faults:
// C[m][n] = sum over k of A[m][k] * B[n][k], bf16 in and out.
//
// One warp fills three stages of 64 x 64 tiles with bulk tensor copies, a
// warpgroup multiplies them with wgmma and hands them back; the result goes
// through shared memory to a bulk tensor store. The PTX beside this file is
// made by make_ptx.sh.
#include <cuda.h>
#include <cuda_bf16.h>

namespace {

// The last argument of the kernels, ...
enum Fault {
  None,
  NoFullWait,      // the consumers do not wait for the copies
  NoEmptyWait,     // the producer does not wait for the consumers
  WrongSwizzle,    // the descriptor says 64 bytes, the copy swizzled 128
  EarlyRelease,    // a stage is handed back while wgmma reads it
  NoProxyFence,    // the store is not told of what the threads wrote
  NoStoreBarrier,  // the store does not wait for the threads
  TooFewBytes,     // expect_tx counts only A
  NoBarrierInit,   // the mbarriers are never initialised
  NoInitBarrier,   // the other threads do not wait for their initialisation
  NoStoreWait,     // shared memory is written again while the store reads it
};

// ... but for faults that can be seen in the code: accumulators are used while
// wgmma runs, or multiplied without a fence after they were computed.
enum CodeFault { Sound, NoWgmmaWait, NoWgmmaFence };

constexpr int tile = 64, stages = 3, tileBytes = tile * tile * 2;
constexpr int consumers = 128, threads = consumers + 32;

__device__ unsigned sharedAddress(const void *p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ void initBarrier(unsigned barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier),
               "r"(count)
               : "memory");
}

__device__ void expect(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   barrier),
               "r"(bytes)
               : "memory");
}

__device__ void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier)
               : "memory");
}

__device__ void waitFor(unsigned barrier, int parity) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@done bra over;\n"
               "bra again;\n"
               "over:\n"
               "}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}

__device__ void copyTile(unsigned to, const CUtensorMap *map, int x, int y,
                         unsigned barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::"
               "complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
               "l"(map), "r"(x), "r"(y), "r"(barrier)
               : "memory");
}

__device__ unsigned long long describeTile(int fault, unsigned at) {
  unsigned long long swizzle = fault == WrongSwizzle ? 2 : 1;
  return (at & 0x3ffff) >> 4 | 1ull << 16 | (1024ull >> 4) << 32 |
         swizzle << 62;
}

__device__ void multiply(float (&d)[32], unsigned long long a,
                         unsigned long long b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "
      "%30, %31}, %32, %33, 1, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
        "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]),
        "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]),
        "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]),
        "+f"(d[31])
      : "l"(a), "l"(b));
}

/// Keeps the compiler from moving uses of d across this place.
__device__ void pin(float (&d)[32]) {
  for (int i = 0; i < 32; ++i)
    asm volatile("" : "+f"(d[i])::"memory");
}

struct Shared {
  alignas(1024) unsigned char a[stages][tileBytes], b[stages][tileBytes];
  alignas(1024) __nv_bfloat16 c[tile * tile];
  alignas(8) unsigned long long full[stages], empty[stages];
};

__device__ void produce(int fault, Shared &s, const CUtensorMap *a, const CUtensorMap *b,
                        int steps) {
  if (threadIdx.x != consumers)
    return;
#pragma unroll 1
  for (int i = 0; i < steps; ++i) {
    int stage = i % stages;
    unsigned full = sharedAddress(&s.full[stage]);
    if (fault != NoEmptyWait)
      waitFor(sharedAddress(&s.empty[stage]), i / stages % 2 ^ 1);
    expect(full, fault == TooFewBytes ? tileBytes : 2 * tileBytes);
    copyTile(sharedAddress(s.a[stage]), a, i * tile, blockIdx.y * tile, full);
    copyTile(sharedAddress(s.b[stage]), b, i * tile, blockIdx.x * tile, full);
  }
}

template <CodeFault codeFault>
__device__ void consume(int fault, Shared &s, float (&d)[32], int steps) {
  for (int i = 0; i < 32; ++i)
    d[i] = 0;
#pragma unroll 1
  for (int i = 0; i < steps; ++i) {
    int stage = i % stages;
    if (fault != NoFullWait)
      waitFor(sharedAddress(&s.full[stage]), i / stages % 2);
    if (codeFault == NoWgmmaFence)
      for (int e = 0; e < 32; ++e)
        d[e] *= float(blockDim.x) / threads;
    pin(d);
    if (codeFault != NoWgmmaFence)
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int k = 0; k < tile; k += 16)
      multiply(d, describeTile(fault, sharedAddress(s.a[stage]) + k * 2),
               describeTile(fault, sharedAddress(s.b[stage]) + k * 2));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    if (fault == EarlyRelease && threadIdx.x == 32)
      arrive(sharedAddress(&s.empty[stage]));
    if (codeFault != NoWgmmaWait)
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    pin(d);
    // Any one thread: wgmma ends for the whole warpgroup.
    if (fault != EarlyRelease && threadIdx.x == 32)
      arrive(sharedAddress(&s.empty[stage]));
  }
}

__device__ void syncConsumers() {
  asm volatile("bar.sync 1, 128;" ::: "memory");
}

__device__ void store(int fault, Shared &s, const float (&d)[32], const CUtensorMap *c) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll 1
  for (int round = 0; round < 2; ++round) { // twice, to write s.c again
    for (int i = 0; i < 32; ++i) {
      int row = warp * 16 + lane / 4 + i / 2 % 2 * 8;
      int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      int piece = column / 8 ^ row % 8; // the map swizzles 128 bytes
      s.c[row * tile + piece * 8 + column % 8] = __float2bfloat16(d[i]);
    }
    if (fault != NoProxyFence)
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    if (fault != NoStoreBarrier)
      syncConsumers();
    if (threadIdx.x == 0) {
      asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
                   "[%0, {%1, %2}], [%3];" ::"l"(c),
                   "r"(blockIdx.x * tile), "r"(blockIdx.y * tile),
                   "r"(sharedAddress(s.c))
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      if (fault != NoStoreWait)
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    syncConsumers();
  }
}

template <CodeFault codeFault>
__device__ void run(int fault, const CUtensorMap *a, const CUtensorMap *b,
                     const CUtensorMap *c, int k) {
  extern __shared__ __align__(1024) unsigned char raw[];
  Shared &s = *reinterpret_cast<Shared *>(raw);
  if (threadIdx.x == 0 && fault != NoBarrierInit) {
    for (int i = 0; i < stages; ++i) {
      initBarrier(sharedAddress(&s.full[i]), 1);
      initBarrier(sharedAddress(&s.empty[i]), 1);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (fault != NoInitBarrier)
    __syncthreads();
  int steps = (k + tile - 1) / tile;
  if (threadIdx.x >= consumers) {
    produce(fault, s, a, b, steps);
    return;
  }
  float d[32];
  consume<codeFault>(fault, s, d, steps);
  store(fault, s, d, c);
}

} // namespace

#define KERNEL(name, codeFault)                                                \
  extern "C" __global__ void __launch_bounds__(threads) name(                  \
      const __grid_constant__ CUtensorMap a,                                   \
      const __grid_constant__ CUtensorMap b,                                   \
      const __grid_constant__ CUtensorMap c, int k, int fault) {               \
    run<codeFault>(fault, &a, &b, &c, k);                                     \
  }
KERNEL(gemm, Sound)
KERNEL(gemmNoWgmmaWait, NoWgmmaWait)
KERNEL(gemmNoWgmmaFence, NoWgmmaFence)
