#!/bin/sh
# Gathers on one node what explains its interconnect: GPUs, NVLink, network cards, limits, settings.
# Reads only; writes nothing but its own output. Standard tools; those that are missing are skipped and named.
#
#   sh collect.sh [-o DIR] [-m]
#
#   -o DIR   a new folder, or DIR.tar.gz for an archive; ./linkwise-HOST-TIME if left out
#   -m       mask addresses, host names, serial numbers and secrets, each by the same word everywhere
#
# Each command has a few seconds, all together 30. Works with dash, bash and busybox.

# shellcheck disable=SC2016  # what stands in single quotes is for the shell that gather starts
set -u
PATH="$PATH:/usr/sbin:/sbin:/usr/local/bin:/opt/mellanox/bin"
LC_ALL=C
export PATH LC_ALL

total_s=28
out=''
mask=0
while [ $# -gt 0 ]; do
    case $1 in
        -o) [ $# -gt 1 ] || { echo "collect: -o needs the name of a new folder" >&2; exit 2; }
            out=$2; shift 2 ;;
        -m) mask=1; shift ;;
        -h) sed -n '2,10s/^# \{0,1\}//p' "$0" 2>/dev/null; exit 0 ;;
        *) echo "collect: unknown argument '$1'; use -o DIR and -m" >&2; exit 2 ;;
    esac
done

host=$(uname -n 2>/dev/null || echo node)
[ "$mask" = 1 ] && host=node
[ -n "$out" ] || out="./linkwise-$host-$(date +%Y%m%d-%H%M%S)"
archive=''
case $out in
    *.tar.gz) archive=$out; out=${out%.tar.gz} ;;
esac
for place in "$out" "$archive"; do
    if [ -n "$place" ] && [ -e "$place" ]; then
        echo "collect: $place exists and is left alone; give another name" >&2
        exit 2
    fi
done
umask 077
mkdir "$out" 2>/dev/null || { echo "collect: cannot make the folder $out" >&2; exit 2; }

newline='
'
start_s=$(date +%s)
skipped=''
count=0

left_s() {
    echo $((total_s - ($(date +%s) - start_s)))
}

limited() { # SECONDS COMMAND...: run with a limit, where the system has one
    limit_s=$1
    shift
    if command -v timeout >/dev/null 2>&1; then
        timeout "$limit_s" "$@"
    else
        "$@" &
        child=$!
        ( sleep "$limit_s"; kill "$child" 2>/dev/null ) >/dev/null 2>&1 &
        watch=$!
        wait "$child"
        code=$?
        kill "$watch" 2>/dev/null
        return "$code"
    fi
}

gather() { # FILE SECONDS COMMAND ARGUMENT...
    file=$1
    limit_s=$2
    shift 2
    if ! command -v "$1" >/dev/null 2>&1; then
        skipped="$skipped $1"
        return 0
    fi
    if [ "$1" != sh ] && grep -qx "$1" "$out/.slow" 2>/dev/null; then
        echo "$file: $1 did not answer before" >>"$out/skipped.txt"
        return 0
    fi
    left=$(left_s)
    if [ "$left" -le 0 ]; then
        echo "$file: no time left" >>"$out/skipped.txt"
        return 0
    fi
    [ "$limit_s" -le "$left" ] || limit_s=$left
    {
        case "$*" in
            *"$newline"*) echo "\$ sh -c '...' ($file)" ;;
            "sh -c "*) echo "\$ $3" ;;
            *) echo "\$ $*" ;;
        esac
        {
            limited "$limit_s" "$@" </dev/null 2>&1
            [ $? -ne 124 ] || { echo "(stopped after $limit_s s)"; echo "$1" >>"$out/.slow"; }
        } | head -c 2000000
    } >"$out/$file.txt"
    count=$((count + 1))
}

# Variables of communication libraries and launchers alone: an environment holds secrets.
settings() {
    env | sed -n -E '/^(NCCL|RCCL|TORCH_(NCCL|FR|DISTRIBUTED)|GLOO|TP_SOCKET|FI|OFI|RDMAV|UCX|NVSHMEM|PET|OMPI_MCA)_[A-Za-z0-9_]*=/p
/^SLURM_(NNODES|NTASKS|NTASKS_PER_NODE|TASKS_PER_NODE|NODEID|PROCID|LOCALID|JOB_NUM_NODES|GPUS[A-Z_]*)=/p
/^(MASTER_ADDR|MASTER_PORT|RANK|LOCAL_RANK|WORLD_SIZE|OMP_NUM_THREADS|CUDA_[A-Z_]*|NVIDIA_[A-Z_]*|LD_LIBRARY_PATH)=/p' |
        sed -E 's/^([A-Za-z0-9_]*(TOKEN|SECRET|PASSW|CREDENTIAL|[^P]KEY)[A-Za-z0-9_]*)=.*/\1=(not shown)/' | sort -u | if [ "$mask" = 1 ]; then sed 's/^\([A-Z_]*MASTER_ADDR\)=.*[a-zA-Z].*/\1=(masked)/'; else cat; fi
}

{
    echo '$ env (communication only)'
    settings
} >"$out/env.txt"
count=$((count + 1))

gather date 1 date -u +%Y-%m-%dT%H:%M:%SZ
gather kernel 1 uname -srvm
gather os-release 1 cat /etc/os-release
gather cmdline 1 sh -c "grep -oE '[a-z_.]*(iommu|pci|vfio)[a-z_.]*=[^ ]*' /proc/cmdline"
gather limits 1 sh -c 'ulimit -a; echo; cat /proc/self/limits'
gather shm 1 df -k /dev/shm
gather cpu 2 lscpu
gather numa 2 numactl --hardware
gather modules 1 sh -c 'grep -E "^(nvidia|nv_peer_mem|gdrdrv|mlx|ib_|rdma|efa|bnxt_re|ionic|irdma)" /proc/modules'
gather fabric-manager 2 systemctl is-active nvidia-fabricmanager nvidia-imex
gather imex 3 nvidia-imex-ctl -N
gather ip-link 2 ip -d link show
gather ip-address 2 ip -br addr
gather ip-route 2 ip route
gather ibv-devinfo 4 ibv_devinfo -v
gather ibstat 3 ibstat
gather rdma-link 2 rdma link
gather rdma-counters 3 rdma statistic
gather gids 3 show_gids
gather netdevs 2 ibdev2netdev
gather fi-info 4 fi_info -p efa
gather infiniband 4 sh -c '
for port in /sys/class/infiniband/*/ports/*; do
    for name in link_layer state phys_state rate; do
        [ -r "$port/$name" ] && echo "$port/$name: $(cat "$port/$name" 2>/dev/null)"
    done
    for counter in symbol_error link_error_recovery link_downed port_rcv_errors port_xmit_discards port_xmit_wait; do
        [ -r "$port/counters/$counter" ] && echo "$port/counters/$counter: $(cat "$port/counters/$counter" 2>/dev/null)"
    done
    for index in 0 1 2 3 4 5 6 7; do
        [ -r "$port/gids/$index" ] && [ -r "$port/gid_attrs/types/$index" ] &&
            echo "$port/gids/$index: $(cat "$port/gids/$index" 2>/dev/null) $(cat "$port/gid_attrs/types/$index" 2>/dev/null)"
    done
done 2>/dev/null'
gather flow-control 5 sh -c '
for device in /sys/class/net/*; do
    name=${device##*/}
    [ -e "$device/device/infiniband" ] || continue
    echo "== $name mtu $(cat "$device/mtu" 2>/dev/null)"
    command -v mlnx_qos >/dev/null 2>&1 && mlnx_qos -i "$name" 2>/dev/null
    command -v ethtool >/dev/null 2>&1 && ethtool -S "$name" 2>/dev/null | grep -E "discards|pause_storm|link_down"
    for end in roce_np roce_rp; do
        for each in "$device/ecn/$end/enable"/*; do
            [ -r "$each" ] && echo "$each: $(cat "$each" 2>/dev/null)"
        done
    done
done 2>/dev/null'
gather gpu-list 5 nvidia-smi -L
gather gpu-query 6 nvidia-smi -q
gather gpu-topology 6 nvidia-smi topo -m
gather gpu-p2p 6 nvidia-smi topo -p2p n
gather nvlink 5 nvidia-smi nvlink -s
gather rocm-topology 5 rocm-smi --showtopo
gather pci-tree 3 lspci -tv
gather pci-acs 6 sh -c 'lspci -vvv 2>/dev/null | grep -E "^[0-9a-f:.]+ |ACSCtl|LnkSta:"'
gather iommu 1 sh -c 'ls /sys/kernel/iommu_groups 2>/dev/null | wc -l'
gather peer-memory 1 sh -c 'cat /sys/module/nvidia_peermem/version /sys/module/nv_peer_mem/version 2>/dev/null; ls /sys/kernel/mm/memory_peers 2>/dev/null'
gather libraries 3 sh -c 'ldconfig -p 2>/dev/null | grep -E "libnccl|librccl|libibverbs|libfabric|libmlx5|libcuda\.so"'
gather nccl-conf 1 sh -c 'for each in /etc/nccl.conf "${HOME:-}/.nccl.conf"; do [ -r "$each" ] && { echo "== $each"; cat "$each"; }; done; true'
gather kernel-log 4 sh -c 'dmesg 2>/dev/null | grep -iE "xid|nvrm|nvlink|mlx5|infiniband|efa|iommu|acs" | tail -n 400'

hide() { # Every address, name and number by the same word in all files.
    cat "$out"/*.txt | grep -oE '([0-9]{1,3}\.){3}[0-9]{1,3}|([0-9a-fA-F]{0,4}:){2,19}[0-9a-fA-F]{0,4}|0x[0-9a-fA-F]{16}|GPU-[0-9a-fA-F-]{36}' |
        grep -vE '^(127\.0\.0\.1|0\.0\.0\.0|255\.[0-9.]+|[0-9]{2}:[0-9]{2}:[0-9]{2}|:+[0-9a-fA-F]?)$' | sort -u >"$out/.words"
    real=$(uname -n 2>/dev/null)
    awk -v real="$real" '
        FILENAME == words { kind = $0 ~ /^GPU/ ? "gpu" : "address"; count[kind]++
                            name[$0] = kind "-" count[kind]
                            next }
        FNR == 1 { if (target) close(target); target = FILENAME ".masked" }
        { line = $0; result = ""
          while (match(line, /[0-9a-zA-Z.:-]+/)) {
              word = substr(line, RSTART, RLENGTH)
              result = result substr(line, 1, RSTART - 1) shown(word)
              line = substr(line, RSTART + RLENGTH) }
          result = result line
          if (tolower(result) ~ /(serial|board part|sys_image_guid|node_guid|node guid|port guid)/) sub(/:.*/, ": (masked)", result)
          print result > target }
        function shown(word,   bare) {
            if (word in name) return name[word]
            bare = word; sub(/[.:]+$/, "", bare)
            if (bare in name) return name[bare] substr(word, length(bare) + 1)
            if (real != "" && (word == real || index(word, real ".") == 1)) return "node"
            return word }' words="$out/.words" "$out/.words" "$out"/*.txt
    rm -f "$out/.words"
    for each in "$out"/*.txt; do
        if [ -e "$each.masked" ]; then mv "$each.masked" "$each"; else rm -f "$each"; fi
    done
}

{
    echo '$ collect'
    echo "gathered: $count"
    echo "seconds: $(($(date +%s) - start_s))"
    echo "masked: $mask"
    # shellcheck disable=SC2086  # one word a line
    echo "not there:$(printf '%s\n' $skipped | sort -u | tr '\n' ' ' | sed 's/^ */ /; s/ *$//')"
} >"$out/collected.txt"

rm -f "$out/.slow"
[ "$mask" = 0 ] || hide

if [ -n "$archive" ]; then
    parent=$(dirname "$out")
    if tar -C "$parent" -czf "$archive" "$(basename "$out")"; then
        rm -r "$out"
        out=$archive
    else
        rm -f "$archive"
        echo "collect: no archive could be made; the folder $out is there" >&2
        exit 2
    fi
fi
echo "$out"
