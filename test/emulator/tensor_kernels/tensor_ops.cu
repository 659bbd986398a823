// Small kernels, one for each form of instruction that the GEMMs lack. Each
// stores what it computes, and the test knows what that must be.
#include <cuda.h>
#include <cuda_fp16.h>
#include <stdint.h>

__device__ unsigned sharedAddress(const void *p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ void waitFor(unsigned barrier, int parity) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra again;\n"
               "}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}

// Four 8 x 8 matrices, each transposed three times: by ldmatrix, by movmatrix
// and by stmatrix.
extern "C" __global__ void transposeMatrices(const uint4 *in, uint4 *out) {
  __shared__ uint4 rows[32];
  rows[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  unsigned address = sharedAddress(&rows[threadIdx.x]), r[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
               "{%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
  for (int i = 0; i < 4; ++i)
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(r[i]));
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], "
               "{%1, %2, %3, %4};" ::"r"(address),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
  __syncwarp();
  out[threadIdx.x] = rows[threadIdx.x];
}

// Fragments come from and go to memory as they are: register i of lane l at
// [i][l]. In: A, B, C one after the other.
#define MMA_4_4_2(name, text, constraint, type)                                \
  extern "C" __global__ void name(const uint32_t *in, uint32_t *out) {         \
    uint32_t r[10];                                                            \
    for (int i = 0; i < 10; ++i)                                               \
      r[i] = in[i * 32 + threadIdx.x];                                         \
    type d[4];                                                                 \
    for (int i = 0; i < 4; ++i)                                                \
      d[i] = *reinterpret_cast<type *>(&r[6 + i]);                             \
    asm volatile(text " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "        \
                      "{%0, %1, %2, %3};"                                      \
                 : "+" constraint(d[0]), "+" constraint(d[1]),                 \
                   "+" constraint(d[2]), "+" constraint(d[3])                  \
                 : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]),      \
                   "r"(r[5]));                                                 \
    for (int i = 0; i < 4; ++i)                                                \
      out[i * 32 + threadIdx.x] = *reinterpret_cast<uint32_t *>(&d[i]);        \
  }
MMA_4_4_2(mmaBF16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "f",
          float)
MMA_4_4_2(mmaTF32, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "f",
          float)
MMA_4_4_2(mmaFp8, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", "f",
          float)
MMA_4_4_2(mmaS8, "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32", "r",
          uint32_t)
MMA_4_4_2(mmaS8Saturated,
          "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32", "r",
          uint32_t)
MMA_4_4_2(mmaS4, "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", "r",
          uint32_t)

extern "C" __global__ void mmaF64(const double *in, double *out) {
  double a = in[threadIdx.x], b = in[32 + threadIdx.x];
  double c0 = in[64 + threadIdx.x], c1 = in[96 + threadIdx.x];
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, "
               "{%2}, {%3}, {%0, %1};"
               : "+d"(c0), "+d"(c1)
               : "d"(a), "d"(b));
  out[threadIdx.x] = c0;
  out[32 + threadIdx.x] = c1;
}

// 64 x 32 = A (64 x 16, in registers) * B (16 x 32, N-major in shared memory
// with rows of 64 bytes, swizzled so), f16 accumulators, then again with -A.
extern "C" __global__ void wgmmaF16(const uint32_t *a, const uint4 *b,
                                    uint32_t *out) {
  __shared__ __align__(1024) uint4 tile[64];
  int t = threadIdx.x;
  if (t < 64) {
    int k = t / 4, piece = t % 4;
    tile[k * 4 + (piece ^ (k / 2 % 4))] = b[t];
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  unsigned long long at = sharedAddress(tile);
  // Rows of k lie 64 bytes apart, groups of eight 512; one piece of 64 bytes
  // covers all of N.
  unsigned long long descriptor =
      (at & 0x3ffff) >> 4 | 1ull << 16 | (512ull >> 4) << 32 | 2ull << 62;
  uint32_t r[4], d[8];
  for (int i = 0; i < 4; ++i)
    r[i] = a[i * 128 + t];
  for (int i = 0; i < 8; ++i)
    d[i] = 0x7e007e00; // NaN, which scale-d = 0 must not read
  int keep = 0;
  for (int i = 0; i < 8; ++i)
    asm volatile("" : "+r"(d[i])::"memory");
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#define WGMMA(scaleA)                                                          \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %13, 0;\n"                    \
               "wgmma.mma_async.sync.aligned.m64n32k16.f16.f16.f16 "           \
               "{%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, %12, p," \
               " " scaleA ", 1, 1;\n}"                                         \
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]),   \
                 "+r"(d[5]), "+r"(d[6]), "+r"(d[7])                            \
               : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "l"(descriptor),  \
                 "r"(keep))
  WGMMA("1");
  keep = 1;
  WGMMA("1");
  WGMMA("-1");
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 8; ++i)
    asm volatile("" : "+r"(d[i])::"memory");
  for (int i = 0; i < 8; ++i)
    out[i * 128 + t] = d[i];
}

// Bytes in by a bulk copy, doubled, and added to what is in global memory by a
// bulk reduction. `skip` leaves out the n-th step.
extern "C" __global__ void bulkAdd(const float *in, float *out, int bytes,
                                   int skip) {
  __shared__ __align__(128) float data[256];
  __shared__ __align__(8) unsigned long long barrier;
  unsigned at = sharedAddress(&barrier), to = sharedAddress(data);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     at),
                 "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
                 "bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(in), "r"(bytes), "r"(at)
                 : "memory");
  }
  __syncthreads();
  if (skip != 1)
    waitFor(at, 0);
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x)
    data[i] *= 2;
  if (skip != 2)
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (skip != 3)
    __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 "
                 "[%0], [%1], %2;" ::"l"(out),
                 "r"(to), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    if (skip != 4)
      asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    data[0] = 0;
  }
  if (threadIdx.x == 0 && skip != 5)
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(at) : "memory");
}

// cp.async whose end is an arrival: every thread copies for its neighbour.
extern "C" __global__ void copyArrive(const float4 *in, float4 *out, int skip) {
  __shared__ float4 data[128];
  __shared__ __align__(8) unsigned long long barrier;
  unsigned at = sharedAddress(&barrier);
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" ::"r"(at)
                 : "memory");
  __syncthreads();
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   sharedAddress(&data[threadIdx.x])),
               "l"(in + threadIdx.x)
               : "memory");
  if (skip == 1)
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at)
                 : "memory");
  else
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(
                     at)
                 : "memory");
  if (skip != 2)
    waitFor(at, 0);
  out[threadIdx.x] = data[(threadIdx.x + 32) % 128];
}

// Each block of a cluster of two loads one half of a 64 x 16 box into both, and
// tells the other one through its mbarrier that it has read.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    multicast(const __grid_constant__ CUtensorMap map, uint4 *out) {
  __shared__ __align__(128) uint4 tile[2][64];
  __shared__ __align__(8) unsigned long long full, read;
  unsigned rank, filled = sharedAddress(&full), done = sharedAddress(&read);
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(filled)
                 : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(done)
                 : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 2048;" ::
                     "r"(filled)
                 : "memory");
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\n"
               "barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
  if (threadIdx.x == 0)
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile."
                 "mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(
                     sharedAddress(tile[rank])),
                 "l"(&map), "r"(0), "r"(int(rank) * 16), "r"(filled),
                 "h"(short(3))
                 : "memory");
  waitFor(filled, 0);
  for (int i = threadIdx.x; i < 128; i += blockDim.x)
    out[rank * 128 + i] = tile[i / 64][i % 64];
  __syncthreads();
  if (threadIdx.x < 2) {
    unsigned remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(remote)
                 : "r"(done), "r"(threadIdx.x));
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, "
                 "[%0];" ::"r"(remote)
                 : "memory");
  }
  waitFor(done, 0);
}
