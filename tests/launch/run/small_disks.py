"""A small disk for tests that fill one."""

import os
import subprocess
from contextlib import contextmanager


@contextmanager
def small_disk(folder, *, size_mib):
    """Give a folder on a disk of its own; it must be there before a lab's Slurm starts, to be seen by it."""
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs", str(disk)], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(disk, *, leave_bytes=0):
    """Leave no more than some bytes of a disk free."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    with (disk / "filler").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free - leave_bytes)
