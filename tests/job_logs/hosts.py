"""What commands print on a host: files that an operator puts beside a log."""


def command(line: str, output: str) -> str:
    """Return a command and its output as they stand in a terminal."""
    return f"$ {line}\n{output.rstrip()}\n"


def lspci_acs(*, redirects: bool) -> str:
    """Return the access control state of the bridges."""
    sign = "+" if redirects else "-"
    row = f"\t\tACSCtl:\tSrcValid{sign} TransBlk- ReqRedir{sign} CmpltRedir{sign} UpstreamFwd{sign} EgressCtrl- DirectTrans-"
    return command("sudo lspci -vvv | grep ACSCtl", "\n".join([row] * 3))


def kernel_command_line(options: str) -> str:
    return command(
        "cat /proc/cmdline", f"BOOT_IMAGE=/boot/vmlinuz-5.15.0-91-generic root=UUID=1c1f ro quiet {options}"
    )


def dmesg(*rows: str) -> str:
    return command("dmesg -T | tail -20", "\n".join(rows))


def locked_memory(value: str) -> str:
    return command("ulimit -l", value)


def open_files(value: str) -> str:
    return command("ulimit -n", value)


def shared_memory(size: str, used: str, free: str, percent: int) -> str:
    head = "Filesystem      Size  Used Avail Use% Mounted on"
    return command(
        "df -h /dev/shm", f"{head}\n{'shm':<15}{size:>5} {used:>5} {free:>5} {percent:>3}% /dev/shm"
    )


def modules(*names: str) -> str:
    rows = "\n".join(f"{name:<22} 16384  0" for name in names)
    return command("lsmod | grep -E 'peer|mlx5_ib'", rows)


def ibstat(*ports: tuple[str, str, str, int]) -> str:
    """Return ibstat of (name, state, link layer, Gbit/s) of each HCA."""
    rows = []
    for name, state, layer, rate in ports:
        rows += [
            f"CA '{name}'",
            "\tCA type: MT4129",
            "\tNumber of ports: 1",
            "\tPort 1:",
            f"\t\tState: {state}",
        ]
        rows += [
            f"\t\tPhysical state: {'LinkUp' if state == 'Active' else 'Polling'}",
            f"\t\tRate: {rate}",
            f"\t\tLink layer: {layer}",
        ]
    return command("ibstat", "\n".join(rows))


def devinfo(name: str, mtu: int, largest: int = 4096) -> str:
    codes = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
    return command(
        f"ibv_devinfo -d {name}",
        f"hca_id:\t{name}\n\ttransport:\t\t\tInfiniBand (0)\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n"
        f"\t\t\tmax_mtu:\t\t{largest} ({codes[largest]})\n\t\t\tactive_mtu:\t\t{mtu} ({codes[mtu]})\n\t\t\tlink_layer:\t\tEthernet",
    )


def gids(*rows: tuple[str, int, str, str, str]) -> str:
    """Return show_gids of (device, index, GID, IPv4, version)."""
    head = "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\n---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---"
    devices = list(dict.fromkeys(row[0] for row in rows))
    body = "\n".join(
        f"{dev}\t1\t{index}\t{gid}\t{ip:<14}\t{ver}\tens{devices.index(dev) + 2}f0"
        for dev, index, gid, ip, ver in rows
    )
    return command("show_gids", f"{head}\n{body}\nn_gids_found={len(rows)}")


def addresses(*rows: tuple[str, str, str]) -> str:
    """Return `ip -br addr` of (interface, state, address)."""
    return command(
        "ip -br addr", "\n".join(f"{name:<16} {state:<14} {address}" for name, state, address in rows)
    )


def interface_speed(name: str, mbit_per_s: int) -> str:
    return command(f"ethtool {name} | grep Speed", f"\tSpeed: {mbit_per_s}Mb/s")


def bonding(name: str, slaves: tuple[str, str], mbit_per_s: int) -> str:
    parts = [
        "Ethernet Channel Bonding Driver: v5.15.0\n\nBonding Mode: IEEE 802.3ad Dynamic link aggregation\nTransmit Hash Policy: layer3+4 (1)\nMII Status: up"
    ]
    parts += [
        f"Slave Interface: {slave}\nMII Status: up\nSpeed: {mbit_per_s} Mbps\nDuplex: full"
        for slave in slaves
    ]
    return command(f"cat /proc/net/bonding/{name}", "\n\n".join(parts))


def service(name: str, state: str) -> str:
    return command(f"systemctl is-active {name}", state)


def listing(path: str, *names: str) -> str:
    return command(f"ls {path}", "\n".join(names) or f"ls: cannot access '{path}': No such file or directory")


def topology(gpus: int, link: str, nic: str = "PIX") -> str:
    """Return the matrix of `nvidia-smi topo -m` with one kind of link between GPUs, and one NIC."""
    names = [f"GPU{index}" for index in range(gpus)]
    head = "\t" + "\t".join([*names, "NIC0", "CPU Affinity", "NUMA Affinity"])
    rows = [
        "\t".join([name, *(" X " if row == column else link for column in range(gpus)), nic, "0-47", "0"])
        for row, name in enumerate(names)
    ]
    return "\n".join(
        [head, *rows, "\t".join(["NIC0", *[nic] * gpus, " X "]), "", "NIC Legend:", "", "  NIC0: mlx5_0", ""]
    )


def xid(bus: str, number: int, text: str) -> str:
    return f"[Tue Nov  4 08:16:01 2025] NVRM: Xid (PCI:0000:{bus}:00): {number}, {text}"


def gid_of(address: str) -> str:
    """Return the GID of an IPv4 address as sysfs writes it."""
    a, b, c, d = (int(part) for part in address.split("."))
    return f"0000:0000:0000:0000:0000:ffff:{a:02x}{b:02x}:{c:02x}{d:02x}"


def interface_id(address: str) -> int:
    """Return the second half of that GID as NCCL prints it, eight bytes read from the low end."""
    return int.from_bytes(bytes([0, 0, 0xFF, 0xFF, *(int(part) for part in address.split("."))]), "little")
