"""Tenon from Python: compile ONNX models, and run what that makes."""
from .library import CompileError, Library, compile, load

__all__ = ["CompileError", "Library", "compile", "load"]
