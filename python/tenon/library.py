"""Compiled models as shared libraries, by their C interface (runtime/c_api.h)."""
import ctypes
import os
import pathlib
import shutil
import subprocess
import tempfile

import ml_dtypes
import numpy as np

# In the order of tenon_dtype.
DTYPES = [np.dtype(t) for t in (
    np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.int64, np.int32, np.int16, np.int8,
    np.uint64, np.uint32, np.uint16, np.uint8, np.bool_, ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2,
    ml_dtypes.uint2, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e5m2fnuz, ml_dtypes.float8_e8m0fnu, ml_dtypes.float4_e2m1fn)]
BITS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "float4_e2m1fn": 4}


class CompileError(RuntimeError):
    """What `tenon compile` said."""


class TensorStruct(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("rank", ctypes.c_uint32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p),
                ("bytes", ctypes.c_uint64)]


def find_program():
    """`tenon`: $TENON, in $PATH, or in this tree's build folder."""
    beside = pathlib.Path(__file__).resolve().parents[2] / "build" / "bin" / "tenon"
    found = os.environ.get("TENON") or shutil.which("tenon") or (str(beside) if beside.exists() else None)
    if not found:
        raise CompileError("the program 'tenon' is not in $PATH; say where it is with $TENON")
    return found


def compile(model, out, *flags):
    """Compiles an ONNX file to the shared library `out`, with flags as `tenon compile`
    takes them, and loads it."""
    done = subprocess.run([find_program(), "compile", str(model), "-o", str(out), *flags],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise CompileError(done.stderr.strip() or f"exit status {done.returncode}")
    return load(out)


def load(path):
    """A compiled model; call it with its inputs."""
    return Library(path)


def packed(array):
    """The bytes of a C array, elements below a byte packed, the first in the low bits."""
    bits = BITS.get(array.dtype.name)
    if not bits:
        return np.ascontiguousarray(array)
    codes = array.astype(np.float32).astype(np.int8) if array.dtype.name != "float4_e2m1fn" else array
    codes = codes.reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    per = 8 // bits
    codes = np.pad(codes, (0, -len(codes) % per)).reshape(-1, per)
    return np.bitwise_or.reduce(codes << (np.arange(per, dtype=np.uint8) * bits), axis=1).astype(np.uint8)


def unpacked(data, dtype, shape):
    """The array that `packed` makes such bytes of."""
    bits = BITS.get(dtype.name)
    if not bits:
        return np.frombuffer(data, dtype).reshape(shape).copy()
    count, per = int(np.prod(shape)), 8 // bits
    codes = np.frombuffer(data, np.uint8)[:, None] >> (np.arange(per, dtype=np.uint8) * bits)
    codes = (codes & ((1 << bits) - 1)).reshape(-1)[:count]
    if dtype.name == "float4_e2m1fn":
        return codes.astype(np.uint8).view(dtype).reshape(shape)
    if dtype.name.startswith("int"):
        codes = ((codes.astype(np.int8) << (8 - bits)) >> (8 - bits)).astype(np.int8)
    return codes.astype(np.float32).astype(dtype).reshape(shape)


class Library:
    """One compiled model with one session. Not for several threads at once."""

    def __init__(self, path, threads=0):
        self.lib = lib = ctypes.CDLL(str(pathlib.Path(path).resolve()))
        for name in ("tenon_open", "tenon_session_create"):
            getattr(lib, name).restype = ctypes.c_void_p
        for name in ("tenon_open_error", "tenon_session_error", "tenon_input_name", "tenon_output_name"):
            getattr(lib, name).restype = ctypes.c_char_p
        for name in ("tenon_num_inputs", "tenon_num_outputs"):
            getattr(lib, name).restype = ctypes.c_size_t
        self.session = None
        self.model = ctypes.c_void_p(lib.tenon_open())
        if not self.model:
            raise RuntimeError(lib.tenon_open_error().decode())
        self.session = ctypes.c_void_p(lib.tenon_session_create(self.model, ctypes.c_uint(threads)))
        if not self.session:
            raise RuntimeError(lib.tenon_open_error().decode())
        self.inputs = [lib.tenon_input_name(self.model, ctypes.c_size_t(i)).decode()
                       for i in range(lib.tenon_num_inputs(self.model))]
        self.outputs = [lib.tenon_output_name(self.model, ctypes.c_size_t(i)).decode()
                        for i in range(lib.tenon_num_outputs(self.model))]

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.lib.tenon_session_error(self.session).decode())

    def __call__(self, inputs):
        """The outputs, by name, for a dictionary of inputs or a list in the model's order."""
        if not isinstance(inputs, dict):
            inputs = dict(zip(self.inputs, inputs))
        kept = []
        for name, value in inputs.items():
            array = np.asarray(value)
            data = packed(array)
            kept.append(data)
            shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
            self.check(self.lib.tenon_set_input(
                self.session, name.encode(), DTYPES.index(array.dtype.newbyteorder("=")), shape,
                ctypes.c_uint32(array.ndim), ctypes.c_void_p(data.ctypes.data)))
        self.check(self.lib.tenon_run(self.session))
        return {name: self.output(i) for i, name in enumerate(self.outputs)}

    def output(self, index):
        tensor = TensorStruct()
        self.check(self.lib.tenon_get_output(self.session, ctypes.c_size_t(index), ctypes.byref(tensor)))
        shape = tuple(tensor.shape[i] for i in range(tensor.rank))
        data = ctypes.string_at(tensor.data, tensor.bytes) if tensor.bytes else b""
        return unpacked(data, DTYPES[tensor.dtype], shape)

    def __del__(self):
        if getattr(self, "session", None):
            self.lib.tenon_session_destroy(self.session)
        if getattr(self, "model", None):
            self.lib.tenon_close(self.model)
