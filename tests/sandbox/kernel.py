"""Probes of the kernel's interfaces."""

from tests.sandbox.probe import ESCAPED, Probe, call_syscall

KERNEL = (
    Probe(
        "a setting of the kernel",
        f"exec 3>>/proc/sys/kernel/printk_delay && echo {ESCAPED}",
        control="root",
    ),
    Probe(
        "the program for cores",
        f"exec 3>>/proc/sys/kernel/core_pattern && echo {ESCAPED}",
        control="root",
    ),
    Probe("the magic key", f"exec 3>>/proc/sysrq-trigger && echo {ESCAPED}", control="root"),
    Probe(
        "a knob in /sys",
        "for f in /sys/kernel/mm/transparent_hugepage/enabled "
        f"/sys/kernel/mm/ksm/run; do (exec 3>>$f) && echo {ESCAPED}; done",
        control="root",
    ),
    Probe(
        "the log of the kernel",
        f"(exec 3</dev/kmsg) && echo {ESCAPED}; dmesg | grep -q . && echo {ESCAPED}",
        control="root",
    ),
    Probe(
        "the memory of the machine",
        f"for f in /dev/mem /proc/kcore; do head -c 1 $f | grep -q . && echo {ESCAPED}; done",
    ),
    Probe(
        "the disk itself",
        "for f in /dev/vd? /dev/sd? /dev/nvme?n? /dev/xvd? /dev/dm-*; do "
        f"(exec 3<$f) && echo {ESCAPED}; done",
    ),
    Probe(
        "a device of one's own",
        f"rm -f device; mknod device c 1 1 && (exec 3<device) && echo {ESCAPED}",
        control="root",
    ),
    Probe(
        "a control group",
        f"for f in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $f/$WORD && "
        f"rmdir $f/$WORD && echo {ESCAPED}; done",
    ),
    Probe(
        "mount", f"mkdir -p m; mount -t tmpfs none m && umount m && echo {ESCAPED}", control="root"
    ),
    Probe("mount by the newer calls", call_syscall("fsopen", "b'tmpfs', 0"), control="root"),
    Probe(
        "change the root",
        f"chroot . /usr/bin/true 2>&1 | grep -q 'failed to run' && echo {ESCAPED}",
        control="root",
    ),
    Probe("an own user namespace", f"unshare -Ur true && echo {ESCAPED}", control="root"),
    Probe("an own mount namespace", f"unshare -m true && echo {ESCAPED}", control="root"),
    Probe(
        "a child with namespaces",
        call_syscall("clone", "0x10000000 | 17, 0, 0, 0, 0"),
        control="root",
    ),
    Probe(
        "a child by the newer call",
        call_syscall("clone3", "struct.pack('=QQQQQQQQ', 0x10000000, 0, 0, 0, 17, 0, 0, 0), 64"),
        control="root",
    ),
    Probe(
        "the namespaces of a process outside",
        f"nsenter -t $VICTIM -m -u -n true && echo {ESCAPED}",
        control="root",
    ),
    Probe("bpf", call_syscall("bpf", "0, b'\\0' * 128, 128", "(errno.EINVAL,)"), control="root"),
    Probe(
        "performance counters",
        call_syscall("perf_event_open", "None, 0, -1, -1, 0", "(errno.EFAULT,)"),
        control="root",
    ),
    Probe("user page faults", call_syscall("userfaultfd", "1"), control="root"),
    Probe(
        "io_uring",
        call_syscall("io_uring_setup", "1, b'\\0' * 120", "(errno.EINVAL,)"),
        control="root",
    ),
    Probe("keys", call_syscall("add_key", "b'user', b'probe', b'x', 1, -2"), control="root"),
    Probe(
        "files by their handle",
        call_syscall("open_by_handle_at", "-1, b'\\0' * 8, 0", "(errno.EBADF, errno.EINVAL)"),
        control="root",
    ),
    Probe("a module", call_syscall("finit_module", "-1, b'', 0", "(errno.EBADF,)"), control="root"),
    Probe(
        "another kernel",
        call_syscall("kexec_load", "0, 0, None, -1", "(errno.EINVAL,)"),
        control="root",
    ),
    Probe("reboot", call_syscall("reboot", "0, 0, 0, None", "(errno.EINVAL,)"), control="root"),
    Probe(
        "the clock",
        call_syscall("clock_settime", "0, struct.pack('=qq', 0, -1)", "(errno.EINVAL,)"),
        control="root",
    ),
    Probe(
        "swap", call_syscall("swapon", "b'/there/is/none', 0", "(errno.ENOENT,)"), control="root"
    ),
    Probe("the name of the machine", f'hostname "$(uname -n)" && echo {ESCAPED}', control="root"),
)
