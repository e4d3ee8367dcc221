#!/usr/bin/env bash
# What a GPU has to show: the numbers of a CPU, seconds and memory of an update. Under six minutes, from a checkout:
#   bash benchmarks/gpu_check.sh FOLDER [random|smollm2|DIR]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${1:?usage: gpu_check.sh FOLDER [random|smollm2|DIR]}
weights=${2:-random}
export PYTHONPATH=$PWD
mkdir -p "$out"
python -c 'import torch; assert torch.cuda.is_available(), "torch sees no CUDA device"; print(torch.cuda.get_device_name())'
timeout 150 python -m pytest -q -m gpu -p no:cacheprovider tests/test_gpu.py
timeout 100 python -m tetrathlon.benchmarks.device_step --weights "$weights" --out "$out/step-8x8x48.json"
timeout 100 python -m tetrathlon.benchmarks.device_step --weights "$weights" --groups 32 --max-tokens 128 \
    --updates 3 --out "$out/step-32x8x128.json"
