# SPDX-License-Identifier: MIT
"""A virtual machine with Debian's kernel, which this machine's kernel has nothing to do with.

Its file system is an overlay over that of this machine, as in machine.py, and is gone afterwards.
systemd runs in it. It has no network but a loopback interface. It emulates its processors, so it
needs no privilege, and is slow.
"""

from __future__ import annotations

import gzip
import lzma
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.running import TOP

GUEST = TOP / "tests/package/guest"
KERNEL = TOP / ".cache/kernel"
QEMU = "qemu-system-x86_64"
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")  # of the root
LIMIT_S = 3600.0  # Only a machine that hangs needs this long.

# Without no_timer_check, the kernel gives up on a host that is too busy to emulate a timer in time.
KERNEL_WORDS = "console=ttyS0 quiet panic=-1 no_timer_check apparmor=1 security=apparmor"
KERNEL_WORDS += " systemd.show_status=no"


def refusal() -> str:
    """Why such a machine cannot run here. Empty: it can."""
    missing = [name for name in (QEMU, "busybox", "autopkgtest") if not shutil.which(name)]
    if missing or not (KERNEL / "boot").is_dir():
        what = ", ".join([*missing, *([] if (KERNEL / "boot").is_dir() else ["a kernel"])])
        return f"no virtual machine without {what}; `make package VM=1` installs them"
    if not Path("/lib/systemd/systemd").exists():
        return "no virtual machine without systemd"
    return ""


def needed_modules() -> Iterator[tuple[str, bytes]]:
    """The modules of the kernel that the root needs, each after those that it depends on."""
    files = {path.name.partition(".")[0].replace("-", "_"): path for path in KERNEL.rglob("*.ko*")}
    seen: set[str] = set()

    def with_those_before(name: str) -> Iterator[tuple[str, bytes]]:
        if name in seen:
            return
        seen.add(name)
        path = files[name.replace("-", "_")]
        code = path.read_bytes()
        if path.suffix == ".xz":
            code = lzma.decompress(code)
        found = re.search(rb"\0depends=([\w,-]*)\0", code)
        for each in found[1].decode().split(",") if found else []:
            if each:
                yield from with_those_before(each)
        yield f"{name}.ko", code

    for module in MODULES:
        yield from with_those_before(module)


def archive(folder: Path) -> bytes:
    """The folder as a cpio archive of the form `newc`, which the kernel unpacks."""
    entries = []
    for number, path in enumerate([*sorted(folder.rglob("*")), None], 1):
        name = str(path.relative_to(folder)) if path else "TRAILER!!!"
        is_folder = path is not None and path.is_dir()
        content = path.read_bytes() if path and not is_folder else b""
        mode = (stat.S_IFDIR if is_folder else stat.S_IFREG) | 0o755
        fields = [number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0]
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        entries += [head, b"\0" * (-len(head) % 4), content, b"\0" * (-len(content) % 4)]
    return gzip.compress(b"".join(entries), 1)


def boot(payload: Path, place: Path) -> str:
    """Boots the machine, and returns what its scenario printed. `payload` is its /mnt. It also
    has the scenario."""
    root = place / "initramfs"
    (root / "modules").mkdir(parents=True)
    (root / "bin").mkdir()
    shutil.copy(str(shutil.which("busybox")), root / "bin/busybox")
    shutil.copytree(payload, root / "payload")
    for file in GUEST.iterdir():
        shutil.copy(file, root / ("init" if file.name == "init" else f"payload/{file.name}"))
    order = []
    for name, code in needed_modules():
        (root / "modules" / name).write_bytes(code)
        order.append(name)
    (root / "modules/order").write_text("\n".join(order))
    initramfs = place / "initramfs.gz"
    initramfs.write_bytes(archive(root))
    (kernel,) = KERNEL.glob("boot/vmlinuz-*")
    words = [QEMU, "-M", "q35", "-cpu", "max", "-accel", "tcg,thread=multi", "-smp", "2"]
    words += ["-m", "1536", "-nodefaults", "-nographic", "-no-reboot", "-serial", "stdio"]
    words += ["-kernel", str(kernel), "-initrd", str(initramfs), "-append", KERNEL_WORDS]
    words += ["-fsdev", "local,id=host,path=/,security_model=passthrough,readonly=on"]
    words[-1] += ",multidevs=remap"
    words += ["-device", "virtio-9p-pci,fsdev=host,mount_tag=host"]
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LIMIT_S,
        check=False,
    )
    return done.stdout.decode(errors="replace").replace("\r\n", "\n")
