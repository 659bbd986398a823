// Kernels that are right: ordinary CUDA code of many kinds.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void saxpy(float *y, const float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = a * x[i] + y[i];
}

extern "C" __global__ void copy_vectors(float4 *to, const float4 *from, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    to[i] = from[i];
}

// One sum for each block: shuffles in a warp, shared memory between warps.
extern "C" __global__ void block_sums(float *sums, const float *x, int n) {
  __shared__ float parts[32];
  float v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    v += x[i];
  for (int d = 16; d; d /= 2)
    v += __shfl_xor_sync(~0u, v, d);
  if (threadIdx.x % 32 == 0)
    parts[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0;
    for (int d = 16; d; d /= 2)
      v += __shfl_down_sync(~0u, v, d);
    if (threadIdx.x == 0)
      sums[blockIdx.x] = v;
  }
}

extern "C" __global__ void transpose(float *to, const float *from, int rows,
                                     int cols) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < cols && y + j < rows)
      tile[threadIdx.y + j][threadIdx.x] = from[(y + j) * cols + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < rows && y + j < cols)
      to[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void histogram(int *bins, const unsigned char *x, int n) {
  __shared__ int mine[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    mine[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    atomicAdd(&mine[x[i]], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    atomicAdd(&bins[i], mine[i]);
}

// The number of steps of the Collatz sequence: loops of unequal length.
extern "C" __global__ void collatz(int *steps, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned long long v = i + 1;
  int count = 0;
  while (v != 1) {
    if (v & 1)
      v = 3 * v + 1;
    else
      v /= 2;
    if (++count > 1000)
      break;
  }
  steps[i] = count;
}

__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
extern "C" __global__ void recursion(int *out) {
  out[threadIdx.x] = fibonacci(threadIdx.x % 11);
}

__device__ __noinline__ float twice(float x) { return 2 * x; }
__device__ __noinline__ float square(float x) { return x * x; }
__device__ __noinline__ float negate(float x) { return -x; }
extern "C" __global__ void indirect(float *x, const int *which) {
  float (*const table[])(float) = {twice, square, negate};
  int i = threadIdx.x;
  if (which[i] >= 0)
    x[i] = table[which[i]](x[i]);
}

extern "C" __global__ void branches(float *out, const int *which) {
  int i = threadIdx.x;
  float v = i;
  switch (which[i]) {
  case 0: v += 1; break;
  case 1: v *= 2; break;
  case 2: v = sinf(v); break;
  case 3: v = expf(-v); break;
  case 4: v = sqrtf(v); break;
  case 5: v = 1 / (v + 1); break;
  case 6: v = logf(v + 1); break;
  case 7: v = tanhf(v); break;
  }
  out[i] = v;
}

__constant__ float weights[8] = {1, 2, 4, 8, 16, 32, 64, 128};
__device__ int counter;
extern "C" __global__ void constants(float *out, int *order) {
  float mine[8];
  for (int j = 0; j < 8; ++j)
    mine[(j * 3 + threadIdx.x) % 8] = weights[j];
  out[threadIdx.x] = mine[threadIdx.x % 8] + mine[(threadIdx.x + 5) % 8];
  order[threadIdx.x] = atomicAdd(&counter, 1);
}

struct Big {
  int values[40];
};
extern "C" __global__ void by_value(int *out, const __grid_constant__ Big big,
                                    int scale) {
  out[threadIdx.x] = big.values[threadIdx.x % 40] * scale;
}

extern "C" __global__ void halves(__half *out, const __half *a,
                                  const __half *b) {
  int i = threadIdx.x;
  __half2 x = __halves2half2(a[i], b[i]), y = __hfma2(x, x, x);
  out[i] = __hadd(__low2half(y), __hmul(__high2half(y), a[i]));
  out[i + blockDim.x] = __hmax(a[i], b[i]);
  out[i + 2 * blockDim.x] = hexp2(a[i]);
}

extern "C" __global__ void brains(__nv_bfloat16 *out, const __nv_bfloat16 *a,
                                  const __nv_bfloat16 *b) {
  int i = threadIdx.x;
  out[i] = __hadd(a[i], b[i]);
  out[i + blockDim.x] = __hfma(a[i], b[i], a[i]);
}

extern "C" __global__ void wide_integers(long long *out, const long long *a,
                                         const long long *b) {
  int i = threadIdx.x;
  out[4 * i] = a[i] * b[i];
  out[4 * i + 1] = b[i] ? a[i] / b[i] : 0;
  out[4 * i + 2] = __mul64hi(a[i], b[i]);
  out[4 * i + 3] = __popcll(a[i]) + __clzll(b[i]) + (a[i] >> (b[i] & 63));
}

extern "C" __global__ void bits(unsigned *out, const unsigned *a) {
  unsigned x = a[threadIdx.x];
  unsigned r = __byte_perm(x, ~x, 0x2615) ^ __brev(x);
  r += __funnelshift_l(x, r, x & 31) + __popc(x) + __clz(x | 1) + __ffs(x);
  r ^= __dp4a((int)x, (int)r, 7) + __vadd2(x, r);
  out[threadIdx.x] = r + __reduce_add_sync(~0u, x & 0xff);
}

extern "C" __global__ void votes(unsigned *out, const int *x) {
  int v = x[threadIdx.x];
  unsigned r = __ballot_sync(~0u, v & 1);
  r += __any_sync(~0u, v > 100) + 2 * __all_sync(~0u, v >= 0);
  r ^= __match_any_sync(~0u, v % 4);
  if (v & 2)
    r += __popc(__activemask());
  out[threadIdx.x] = r;
}

extern "C" __global__ void doubles(double *out, const double *x) {
  double v = x[threadIdx.x];
  out[threadIdx.x] = sqrt(v) + exp(-v) + v / 3 + fma(v, v, 1.0) + sin(v);
}

extern "C" __global__ void conversions(float *out, const float *x) {
  float v = x[threadIdx.x];
  int n = 8 * threadIdx.x;
  out[n] = (float)(int)v;
  out[n + 1] = (float)__float2uint_rn(v);
  out[n + 2] = (float)(long long)v;
  out[n + 3] = rintf(v);
  out[n + 4] = __half2float(__float2half(v));
  out[n + 5] = __bfloat162float(__float2bfloat16(v));
  out[n + 6] = (float)(signed char)(int)v;
  out[n + 7] = __saturatef(v);
}

// c = a b^T with tensor cores: a is m x k, b is n x k, both row-major; blocks
// of 64 x 64 by four warps, three stages of cp.async.
__device__ __forceinline__ void copy16(void *to, const void *from) {
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at),
               "l"(from));
}
extern "C" __global__ __launch_bounds__(128) void
matmul(float *c, const __half *a, const __half *b, int m, int n, int k) {
  extern __shared__ __align__(16) __half tiles[]; // 3 stages of a and b
  const int row = blockIdx.y * 64, col = blockIdx.x * 64;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  auto stage = [&](int s) { return tiles + s * 2 * 64 * 40; };
  auto load = [&](int s, int at) {
    for (int i = threadIdx.x; i < 256; i += 128) {
      int r = i / 4, p = i % 4 * 8;
      copy16(stage(s) + r * 40 + p, a + (row + r) * k + at + p);
      copy16(stage(s) + 64 * 40 + r * 40 + p, b + (col + r) * k + at + p);
    }
  };
  float sum[8][4] = {};
  int steps = k / 32;
  for (int s = 0; s < 2; ++s) {
    if (s < steps)
      load(s, s * 32);
    asm volatile("cp.async.commit_group;");
  }
  for (int step = 0; step < steps; ++step) {
    asm volatile("cp.async.wait_group 1;");
    __syncthreads();
    if (step + 2 < steps)
      load((step + 2) % 3, (step + 2) * 32);
    asm volatile("cp.async.commit_group;");
    __half *ta = stage(step % 3), *tb = ta + 64 * 40;
    for (int kk = 0; kk < 32; kk += 16) {
      unsigned fa[4];
      unsigned at = (unsigned)__cvta_generic_to_shared(
          ta + (warp * 16 + lane % 16) * 40 + kk + lane / 16 * 8);
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, "
                   "[%4];"
                   : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
                   : "r"(at));
      for (int j = 0; j < 8; ++j) {
        unsigned fb[2];
        unsigned bt = (unsigned)__cvta_generic_to_shared(
            tb + (j * 8 + lane % 8) * 40 + kk + lane / 8 % 2 * 8);
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                     : "=r"(fb[0]), "=r"(fb[1])
                     : "r"(bt));
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
            "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(sum[j][0]), "+f"(sum[j][1]), "+f"(sum[j][2]), "+f"(sum[j][3])
            : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]),
              "r"(fb[1]));
      }
    }
  }
  for (int j = 0; j < 8; ++j) {
    int r = row + warp * 16 + lane / 4, x = col + j * 8 + lane % 4 * 2;
    *(float2 *)&c[r * n + x] = make_float2(sum[j][0], sum[j][1]);
    *(float2 *)&c[(r + 8) * n + x] = make_float2(sum[j][2], sum[j][3]);
  }
}

// The last block to arrive adds up what the others left.
__device__ unsigned arrived;
extern "C" __global__ void last_block(float *total, float *parts) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = blockIdx.x + 1;
    __threadfence();
    last = atomicAdd(&arrived, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i)
      sum += ((volatile float *)parts)[i];
    *total = sum;
  }
}

// Each block waits for the one before it: needs blocks that make way.
extern "C" __global__ void chain(int *turn, int *order) {
  if (threadIdx.x == 0) {
    int before = gridDim.x - 1 - blockIdx.x;
    while (atomicAdd(turn, 0) != before)
      __nanosleep(100);
    order[before] = blockIdx.x;
    __threadfence();
    atomicAdd(turn, 1);
  }
}

extern "C" __global__ void hello(int n) {
  if (threadIdx.x < n)
    printf("lane %d of %s: %5.2f\n", threadIdx.x, "this", threadIdx.x * 0.5);
}

// Named barriers: producers arrive, consumers wait.
extern "C" __global__ void relay(int *out) {
  __shared__ int slot[32];
  if (threadIdx.x < 32) {
    slot[threadIdx.x] = threadIdx.x * 3;
    asm volatile("bar.arrive 1, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[threadIdx.x - 32] = slot[63 - threadIdx.x];
  }
}
