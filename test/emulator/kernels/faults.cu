// Kernels that are wrong, each in one way that must be reported.
#include <cuda_fp16.h>

#define KERNEL extern "C" __global__ void

KERNEL read_beyond(float *out, const float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) // one too many
    out[i % 8] = x[i];
}
KERNEL write_beyond(float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n)
    out[i] = 1;
}
KERNEL write_before(float *out) { out[(int)threadIdx.x - 1] = 1; }
KERNEL null_pointer(float *out) { *(volatile float *)nullptr = out[0]; }
KERNEL misaligned(float *out, const float *x) {
  *(float4 *)&out[0] = *(const float4 *)&x[1];
}
KERNEL unwritten_global(float *out, const float *x) {
  out[threadIdx.x] = x[threadIdx.x + 1];
}
KERNEL unwritten_shared(float *out) {
  __shared__ float s[64];
  if (threadIdx.x < 63)
    s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}
KERNEL unwritten_local(float *out, int n) {
  float values[16];
  for (int i = 0; i < n; ++i)
    values[i * 7 % 16] = i;
  out[threadIdx.x] = values[(threadIdx.x + n) % 16];
}
KERNEL shared_beyond(float *out, int n) {
  extern __shared__ float s[];
  s[threadIdx.x * n] = 1;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}
KERNEL shared_misaligned(float *out, int n) {
  __shared__ __align__(16) float s[64];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  float2 v = *(float2 *)&s[n];
  out[threadIdx.x] = v.x + v.y;
}
KERNEL missing_barrier(float *out) {
  __shared__ float s[128];
  s[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = s[127 - threadIdx.x];
}
// The tile of the next step is written while others still read this one.
KERNEL missing_second_barrier(float *out, const float *x) {
  __shared__ float s[128];
  float sum = 0;
  for (int step = 0; step < 4; ++step) {
    s[threadIdx.x] = x[step * 128 + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 128; ++i)
      sum += s[i];
  }
  out[threadIdx.x] = sum;
}
KERNEL two_writers(float *out) {
  __shared__ float s[32];
  s[threadIdx.x % 32] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x % 32];
}
KERNEL divergent_barrier(float *out) {
  __shared__ float s[64];
  s[threadIdx.x] = 1;
  if (threadIdx.x % 32 < 16)
    __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}
KERNEL barrier_in_one_warp(float *out) {
  __shared__ float s[64];
  s[threadIdx.x] = 1;
  if (threadIdx.x < 32)
    __syncthreads();
  asm volatile("bar.sync 2;");
  out[threadIdx.x] = s[threadIdx.x];
}
KERNEL unequal_counts(float *out) {
  if (threadIdx.x < 32)
    asm volatile("bar.sync 1, 64;");
  else
    asm volatile("bar.sync 1, 96;");
  out[threadIdx.x] = 1;
}
__device__ __forceinline__ void copy16(void *to, const void *from) {
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from)
               : "memory");
}
KERNEL missing_wait(float4 *out, const float4 *x) {
  __shared__ float4 s[64];
  copy16(&s[threadIdx.x], &x[threadIdx.x]);
  asm volatile("cp.async.commit_group;" ::: "memory");
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}
// Waits for all but one group, of two.
KERNEL wait_too_few(float4 *out, const float4 *x) {
  __shared__ float4 s[128];
  copy16(&s[threadIdx.x], &x[threadIdx.x]);
  asm volatile("cp.async.commit_group;" ::: "memory");
  copy16(&s[threadIdx.x + 64], &x[threadIdx.x + 64]);
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x + 64];
}
// Own copies have been waited for, those of the other warp have not.
KERNEL wait_without_barrier(float4 *out, const float4 *x) {
  __shared__ float4 s[64];
  copy16(&s[threadIdx.x], &x[threadIdx.x]);
  asm volatile("cp.async.wait_all;" ::: "memory");
  out[threadIdx.x] = s[63 - threadIdx.x];
}
KERNEL copy_over_readers(float4 *out, const float4 *x) {
  __shared__ float4 s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  float4 v = s[63 - threadIdx.x];
  copy16(&s[threadIdx.x], &x[threadIdx.x + 64]);
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  v.x += s[threadIdx.x].x;
  out[threadIdx.x] = v;
}
KERNEL shuffle_in_branch(float *out, int n) {
  float v = threadIdx.x;
  if (threadIdx.x < n)
    v = __shfl_xor_sync(~0u, v, 1);
  out[threadIdx.x] = v;
}
KERNEL shuffle_from_outside(float *out, int n) {
  float v = threadIdx.x;
  if (threadIdx.x < n)
    v = __shfl_sync(0xffff, v, 20);
  out[threadIdx.x] = v;
}
KERNEL mma_in_branch(float *out, int n) {
  float d[4] = {};
  if (threadIdx.x < n)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
        "{%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(0));
  out[threadIdx.x] = d[0];
}
KERNEL ldmatrix_misaligned(unsigned *out, int skip) {
  __shared__ __align__(16) __half s[512];
  for (int i = threadIdx.x; i < 512; i += 32)
    s[i] = __float2half(i);
  __syncwarp();
  unsigned at = (unsigned)__cvta_generic_to_shared(s + threadIdx.x * 8 + skip);
  unsigned r;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(r)
               : "r"(at));
  out[threadIdx.x] = r;
}
KERNEL never_ends(int *flag) {
  while (atomicAdd(flag, 0) == 0)
    __nanosleep(1000);
}
KERNEL traps(int n) {
  if (threadIdx.x == n)
    asm volatile("trap;");
}
KERNEL writes_constant(float *out, const __grid_constant__ float4 x) {
  float *p = const_cast<float *>(&x.x);
  asm volatile("st.f32 [%0], %1;" ::"l"(p), "f"(1.0f) : "memory");
  out[threadIdx.x] = x.y;
}
KERNEL use_after_free(float *out, const float *x) { out[threadIdx.x] = x[0]; }
KERNEL wrong_space(float *out) {
  __shared__ float s[32];
  s[threadIdx.x] = 1;
  unsigned long long at = (unsigned long long)__cvta_generic_to_shared(s);
  float v;
  asm volatile("ld.global.f32 %0, [%1];" : "=f"(v) : "l"(at));
  out[threadIdx.x] = v;
}
__device__ __noinline__ int deep(int n, volatile int *p) {
  int big[64];
  for (int i = 0; i < 64; ++i)
    big[i] = p[0] + i;
  return n == 0 ? big[5] : deep(n - 1, p) + big[n % 64];
}
KERNEL endless_recursion(int *out) { out[threadIdx.x] = deep(1000000, out); }
