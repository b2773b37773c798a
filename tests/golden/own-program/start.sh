#!/bin/bash
# Starts one node of llama-3.1-70b on oci-h100:8. Written by Linkwise;
# README.md says how to use it.
set -euo pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ $# -lt 2 ]]; then
    echo "usage: $0 NODE_RANK HEAD [ARGUMENT]...: node 0 to 7, and the name of node 0" >&2
    exit 2
fi
node_rank=$1 head=$2
shift 2
if ! [[ $node_rank =~ ^[0-9]+$ ]] || ((10#$node_rank > 7)); then
    echo "$0: NODE_RANK $node_rank is none of 0 to 7" >&2
    exit 2
fi
case "$head" in
    localhost | localhost.* | 127.* | ::1 | 0.0.0.0)
        echo "$0: HEAD $head is this node itself on every node; give the name of node 0" >&2
        exit 2
        ;;
esac
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

exec timeout --foreground --kill-after=60 86400 \
    torchrun --nnodes=8 --nproc-per-node=8 \
    --node-rank="$node_rank" --master-addr="$head" --master-port="${MASTER_PORT:-29500}" \
    --rdzv-id=llama-3-1-70b-oci-h100-8 --log-dir="$logs/node-$node_rank" --redirects=3 --tee=0:3 \
    train.py --layout="$folder"/layout.json \
    "$@"
