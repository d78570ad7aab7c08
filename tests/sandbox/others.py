"""Probes of other processes, services and terminals, and of surviving the shell."""

from pathlib import Path

from tests.sandbox.host import Host
from tests.sandbox.probe import ESCAPED, Probe, connect, open_socket, python

SAME_IPC = {"landlock": "System V memory is shared with the same user's programs"}

NETWORK = (
    Probe(
        "a service of the host",
        connect("AF_INET", "('127.0.0.1', int(name('TCP')))"),
        control="anyone",
    ),
    Probe(
        "a service without connections",
        connect("AF_INET", "('127.0.0.1', int(name('UDP')))", "SOCK_DGRAM"),
        control="anyone",
    ),
    Probe("a socket in a folder outside", connect("AF_UNIX", "name('SOCKET')"), control="anyone"),
    Probe(
        "a socket without a name", connect("AF_UNIX", "'\\0' + name('ABSTRACT')"), control="anyone"
    ),
    Probe(
        "a socket without a name, with the network",
        connect("AF_UNIX", "'\\0' + name('ABSTRACT')"),
        control="anyone",
        network=True,
    ),
    Probe(
        "a way to the outside",
        python("""
with open('/proc/net/route') as file:
    if len(file.readlines()) > 1: escaped()
"""),
        gaps={
            "uid": "it sees the routes, and has no socket to use them",
            "landlock": "it sees the routes, and has no socket to use them",
        },
    ),
    Probe("packets as they are", open_socket("AF_PACKET"), network=True),
    Probe("raw packets", open_socket("AF_INET", protocol=1), network=True),
    Probe("the ciphers of the kernel", open_socket("AF_ALG", "SOCK_SEQPACKET"), network=True),
    Probe("the machine around this one", open_socket("AF_VSOCK", "SOCK_STREAM"), network=True),
)


def _until(state: str) -> str:
    return f"until grep -q '^State:.{state}' /proc/$VICTIM/status; do sleep 0.02; done"


def is_victim_killed(host: Host, _: str) -> bool:
    return host.victim.poll() is not None


PROCESSES = (
    Probe(
        "see what a process outside was told",
        'tr "\\0" " " < "/proc/$VICTIM/environ"',
        control="anyone",
    ),
    Probe(
        "read the memory of a process outside",
        python("""
try: open(f"/proc/{name('VICTIM')}/mem", 'rb'); escaped()
except OSError as error: print(error)
"""),
        control="root",
    ),
    Probe(
        "trace a process outside",
        python("""
if libc.ptrace(16, int(name('VICTIM')), None, None) == 0:
    escaped(); os.waitpid(int(name('VICTIM')), 0x40000000)
    libc.ptrace(17, int(name('VICTIM')), None, None)
"""),
        control="root",
    ),
    Probe(
        "change the limits of a process outside",
        f"prlimit --pid $VICTIM --nofile=16:16 && echo {ESCAPED}",
        control="anyone",
    ),
    Probe(
        "trace who watches the shell",
        python("""
def parent(pid): return int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[1])
shell = parent(os.getppid())
for pid in {1, parent(shell)}:
    if libc.ptrace(16, pid, None, None) == 0: escaped(pid)
"""),
    ),
    Probe(
        "type into one's own terminal",
        python("""
import termios
try: fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), termios.TIOCSTI, b'\\n'); escaped()
except OSError as error: print(error)
"""),
        control="root",
    ),
    Probe(
        "write to another terminal",
        'echo hello > "$TERMINAL"',
        lambda host, _: b"hello" in host.read_terminal(),
        "anyone",
    ),
    Probe(
        "another's shared memory",
        python("""
libc.shmat.restype = ctypes.c_void_p
at = libc.shmat(int(name('SHARED')), None, 0o10000)
if at not in (None, ctypes.c_void_p(-1).value): print(ctypes.string_at(at, 100))
"""),
        control="anyone",
        gaps=SAME_IPC,
    ),
    # The last ones, as they may take the victim with them.
    Probe(
        "stop a process outside",
        f"kill -STOP $VICTIM && {_until('T')}",
        lambda host, _: _state(host) == "T",
        "anyone",
    ),
    Probe("kill everybody", "exec setsid bash -c 'trap \"\" KILL; kill -9 -1'", is_victim_killed),
    Probe(
        "kill a process outside", f"kill -9 $VICTIM && {_until('Z')}", is_victim_killed, "anyone"
    ),
)


def _state(host: Host) -> str:
    return Path(f"/proc/{host.victim.pid}/stat").read_text().rpartition(")")[2].split()[0]


LEAVE = "(setsid bash -c 'exec -a $WORD sleep 3600' </dev/null >/dev/null 2>&1 &)"


def has_survivor(host: Host, _: str) -> bool:
    return bool(host.find_processes())


BREEDERS = Probe(
    "processes that beget each other",
    # Where nobody ends them they end themselves, or they would take the machine from all tests.
    python("""
end = time.monotonic() + 60
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        while time.monotonic() < end:
            try:
                if os.fork(): os._exit(0)
            except OSError: time.sleep(0.01)
        os._exit(0)
"""),
    has_survivor,
)

SURVIVORS = (
    Probe("a daemon", LEAVE, has_survivor),
    Probe(
        "a daemon without a past",
        "(env -i setsid bash -c \"trap '' TERM INT HUP; "
        'exec -a $WORD sleep 3600" </dev/null >/dev/null 2>&1 &)',
        has_survivor,
    ),
    Probe(
        "a daemon whose watcher is killed",
        f"{LEAVE}; read -r _ _ _ watcher _ < /proc/$PPID/stat; kill -9 $watcher 1 $PPID",
        has_survivor,
    ),
    Probe(
        "a daemon whose watcher is stopped",
        f"{LEAVE}; read -r _ _ _ watcher _ < /proc/$PPID/stat; kill -STOP $watcher 1",
        has_survivor,
    ),
    BREEDERS,
)
