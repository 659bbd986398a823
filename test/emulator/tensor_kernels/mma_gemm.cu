// A tensor-core GEMM as Ampere wants it, right and with planted faults:
// C[m][n] = sum over k of A[m][k] * B[n][k], f16 in, f32 out.
//
// Tiles of 64 x 64 x 32 go through three stages of cp.async into swizzled
// shared memory; four warps multiply 32 x 32 each with ldmatrix and mma.sync.
// The PTX beside this file is made by make_ptx.sh.
#include <cuda_fp16.h>

namespace {

// The last argument of the kernel.
enum Fault {
  None,
  WrongSwizzle,     // ldmatrix reads as if the rows were not swizzled
  MissingWait,      // no cp.async.wait_group
  MissingBarrier,   // no __syncthreads before a stage is filled again
  WaitsForTooLittle, // wait_group allows one group too many
  Misaligned,       // ldmatrix rows begin 2 bytes late
  OffByOne,         // the last row of A is one too far
  UncheckedRows,    // rows beyond M are read
  NoCommit,         // the groups are never committed
  DivergentMma,     // only half of the lanes multiply
};

constexpr int tileM = 64, tileN = 64, tileK = 32, stages = 3, threads = 128;
// A row of a tile is 64 bytes, four pieces; two rows share 128 bytes.
constexpr int tileBytes = 64 * tileK * 2, stageBytes = 2 * tileBytes;

__device__ int placeOf(int row, int piece) {
  return row * 64 + ((piece ^ (row / 2 % 4)) * 16);
}

__device__ void copy16(unsigned to, const void *from, bool inside) {
  int bytes = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
               "l"(from), "r"(bytes)
               : "memory");
}

__device__ void loadMatrices(unsigned (&r)[4], unsigned address) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(address)
      : "memory");
}

__device__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                         unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ void fill(int fault, unsigned stage, const __half *a, const __half *b, int m,
                     int n, int k, int step) {
#pragma unroll 1
  for (int i = threadIdx.x; i < 64 * 4; i += threads) {
    int row = i / 4, piece = i % 4;
    int k0 = step * tileK + piece * 8;
    int rowA = blockIdx.y * tileM + row + (fault == OffByOne ? 1 : 0);
    int rowB = blockIdx.x * tileN + row;
    bool inA = (fault == UncheckedRows || rowA < m + (fault == OffByOne)) &&
               k0 < k;
    bool inB = rowB < n && k0 < k;
    const __half *fromA = a + (inA ? size_t(rowA) * k + k0 : 0);
    const __half *fromB = b + (inB ? size_t(rowB) * k + k0 : 0);
    copy16(stage + placeOf(row, piece), fromA, inA);
    copy16(stage + tileBytes + placeOf(row, piece), fromB, inB);
  }
  if (fault != NoCommit)
    asm volatile("cp.async.commit_group;" ::: "memory");
}

__device__ unsigned rowAddress(int fault, unsigned tile, int row, int piece) {
  if (fault == WrongSwizzle)
    return tile + row * 64 + piece * 16;
  return tile + placeOf(row, piece) + (fault == Misaligned ? 2 : 0);
}

__device__ void multiplyStage(int fault, float (&c)[2][4][4], unsigned stage) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int m0 = warp / 2 * 32, n0 = warp % 2 * 32;
  for (int k = 0; k < tileK / 16; ++k) {
    unsigned a[2][4], b[2][4];
    for (int i = 0; i < 2; ++i) {
      int rowA = m0 + i * 16 + lane % 16, rowB = n0 + i * 16 + lane % 8 +
                                                  lane / 16 * 8;
      loadMatrices(a[i], rowAddress(fault, stage, rowA, k * 2 + lane / 16));
      loadMatrices(b[i], rowAddress(fault, stage + tileBytes, rowB,
                                           k * 2 + lane / 8 % 2));
    }
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 4; ++j)
        if (fault != DivergentMma || lane < 16)
          multiply(c[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
  }
}

} // namespace

extern "C" __global__ void __launch_bounds__(threads)
    gemm(const __half *a, const __half *b, float *c, int m, int n, int k,
         int fault) {
  __shared__ __align__(128) unsigned char shared[stages * stageBytes];
  unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  float sums[2][4][4] = {};
  int steps = (k + tileK - 1) / tileK;
#pragma unroll 1
  for (int s = 0; s < stages - 1; ++s)
    fill(fault, base + s * stageBytes, a, b, m, n, k, s);
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    if (fault == WaitsForTooLittle)
      asm volatile("cp.async.wait_group %0;" ::"n"(stages - 1) : "memory");
    else if (fault != MissingWait)
      asm volatile("cp.async.wait_group %0;" ::"n"(stages - 2) : "memory");
    if (fault != MissingBarrier)
      __syncthreads();
    fill(fault, base + (step + stages - 1) % stages * stageBytes, a, b, m, n, k,
                step + stages - 1);
    multiplyStage(fault, sums, base + step % stages * stageBytes);
  }
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j)
      for (int e = 0; e < 4; ++e) {
        int row = blockIdx.y * tileM + warp / 2 * 32 + i * 16 + lane / 4 +
                  e / 2 * 8;
        int column = blockIdx.x * tileN + warp % 2 * 32 + j * 8 + lane % 4 * 2 +
                     e % 2;
        if (row < m && column < n)
          c[size_t(row) * n + column] = sums[i][j][e];
      }
}
