"""Puts plans under PyTorch's GPU memory: python3 pytorch_cuda.py /path/to/libplanlab.so (not measured on a GPU yet)."""

import ctypes
import sys

import torch

library = sys.argv[1]
plugged = torch.cuda.memory.CUDAPluggableAllocator(library, "planlab_cuda_malloc", "planlab_cuda_free")
functions = ctypes.CDLL(library)
for name, setter in [("record_stream", "set_record_stream_fn"), ("empty_cache", "set_reset_fn")]:
    address = ctypes.cast(functions[f"planlab_cuda_{name}"], ctypes.c_void_p).value
    getattr(plugged.allocator(), setter)(address)
torch.cuda.memory.change_current_allocator(plugged)  # before the first tensor on a GPU

net = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(16)]).cuda()
with torch.no_grad():
    for _ in range(50):
        net(torch.randn(256, 4096, device="cuda"))
torch.cuda.synchronize()
