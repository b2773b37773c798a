"""Ask NCCL 2.32 what it makes of a topology file, and print it as JSON; needs no GPU.

    python nccl_search.py LIBNCCL FILE.xml

The functions behind the search are not exported, so their addresses come from the symbol table (`nm`), and the
layouts of two structs are those of NCCL 2.32: this is an oracle for a test and nothing else.
"""

import ctypes
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

VERSIONS = range(23200, 23300)
MOST_NODES = 512
NODE_BYTES = 256 + 17 * 512 + 8 + 8 + 640 * 8 + 8
"""struct ncclXmlNode: name, attributes and their number, type, parent, children and their number."""
GRAPH_BYTES = 1 << 20
RING, BALANCED_TREE = 4, 1


def main(library: str, file: str) -> None:
    """Print rings, trees, and the planned bandwidth of NVLink and NICs [GB/s]."""
    log = tempfile.NamedTemporaryFile("r", suffix=".log")  # noqa: SIM115 - read until the end of the process
    os.environ |= {"NCCL_IGNORE_DISABLED_P2P": "2", "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "GRAPH"}
    os.environ["NCCL_DEBUG_FILE"] = log.name
    nccl = ctypes.CDLL(library)
    version = ctypes.c_int()
    nccl.ncclGetVersion(ctypes.byref(version))
    if version.value not in VERSIONS:
        sys.stdout.write(json.dumps({"version": version.value}))
        return
    call = _internals(nccl, library)
    xml = ctypes.create_string_buffer(8 + MOST_NODES * NODE_BYTES)
    struct.pack_into("ii", xml, 0, 0, MOST_NODES)
    system = ctypes.c_void_p()
    call("_Z22ncclTopoGetXmlFromFilePKcP7ncclXmli", file.encode(), xml, 1)
    call("_Z24ncclTopoGetSystemFromXmlP7ncclXmlPP14ncclTopoSystemm", xml, ctypes.byref(system), 0)
    call("_Z20ncclTopoComputePathsP14ncclTopoSystemP8ncclComm", system, None)
    call("_Z18ncclTopoSearchInitP14ncclTopoSystem", system)
    found = {"version": version.value}
    for name, pattern in (("ring", RING), ("tree", BALANCED_TREE)):
        graph = ctypes.create_string_buffer(GRAPH_BYTES)
        # id, pattern, crossNic, collNet, minChannels, maxChannels; then nChannels, bwIntra, bwInter
        struct.pack_into("6i", graph, 0, int(pattern == BALANCED_TREE), pattern, 0, 0, 1, 64)
        call("_Z15ncclTopoComputeP14ncclTopoSystemP13ncclTopoGraph", system, graph)
        channels, gigabytes_per_s = struct.unpack_from("if", graph, 24)
        found[name] = {"channels": channels, "gigabytes_per_s": gigabytes_per_s}
    call("_Z13ncclTopoPrintP14ncclTopoSystem", system)
    text = log.read()
    for kind in ("NVL", "NET", "PCI"):
        found[kind] = sorted({float(rate) for rate in re.findall(rf"\+ {kind}\[([0-9.]+)\]", text)})
    sys.stdout.write(json.dumps(found))


def _internals(nccl, library):
    listed = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout
    symbols = {
        line.split()[2]: int(line.split()[0], 16) for line in listed.splitlines() if len(line.split()) == 3
    }
    base = ctypes.cast(nccl.ncclGetVersion, ctypes.c_void_p).value - symbols["ncclGetVersion"]

    def call(name, *arguments):
        function = ctypes.CFUNCTYPE(ctypes.c_int, *[_kind(each) for each in arguments])(base + symbols[name])
        code = function(*arguments)
        if code:
            raise RuntimeError(f"{name} returned {code}")

    return call


def _kind(argument):
    if isinstance(argument, bytes):
        return ctypes.c_char_p
    return ctypes.c_uint64 if isinstance(argument, int) else ctypes.c_void_p


if __name__ == "__main__":
    main(*sys.argv[1:])
