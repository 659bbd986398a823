#!/bin/sh
# Makes the PTX of this folder's kernels; run it after changing one.
set -e
cd "$(dirname "$0")"
nvcc=${NVCC:-/usr/local/cuda/bin/nvcc}
compile() {
  "$nvcc" -ptx -std=c++17 -arch="$1" "$2.cu" -o "$2.ptx"
}
compile sm_80 mma_gemm
compile sm_90a wgmma_gemm
compile sm_90a tensor_ops
