#!/bin/bash
# Starts one node of gpt-2-124m on dgx-h100:1. Written by Linkwise; README.md
# says how to use it.
set -euo pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
logs=$folder/logs
mkdir -p "$logs"

# says at the start which transport, NICs and channels are used; to files, not
# to the console (datasheet; NCCL user guide, env.html#nccl-debug)
export NCCL_DEBUG=INFO
# what is written once, when communicators are made, and nothing of single
# calls (datasheet; NCCL user guide, env.html#nccl-debug-subsys)
export NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH
# one file for each process: %h is the host, %p the process (datasheet; NCCL
# user guide, env.html#nccl-debug-file)
export NCCL_DEBUG_FILE="$logs/nccl.%h.%p.log"
# a collective that hangs leaves a record of who waits for whom (datasheet;
# PyTorch documentation torch_nccl_environment_variables)
export TORCH_NCCL_DUMP_ON_TIMEOUT=1
# collectives that this record holds; older releases read
# TORCH_NCCL_TRACE_BUFFER_SIZE (datasheet; PyTorch tutorial, Flight Recorder
# for debugging stuck jobs)
export TORCH_FR_BUFFER_SIZE=2000
# where this record goes, with the rank behind the name; older releases read
# TORCH_NCCL_DEBUG_INFO_TEMP_FILE (datasheet; PyTorch tutorial, Flight
# Recorder for debugging stuck jobs)
export TORCH_FR_DUMP_TEMP_FILE="$logs/flight-recorder-rank-"

mapfile -t arguments < "$folder/ddp.args"
exec timeout --foreground --kill-after=60 86400 \
    torchrun --nnodes=1 --nproc-per-node=8 \
    --standalone \
    --rdzv-id=gpt-2-124m-dgx-h100-1 --log-dir="$logs/node-0" --redirects=3 --tee=0:3 \
    "$folder"/train_ddp.py "${arguments[@]}" \
    "$@"
