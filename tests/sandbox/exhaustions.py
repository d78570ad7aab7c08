"""Probes that exhaust the machine's resources."""

from tests.sandbox.host import Host
from tests.sandbox.probe import ESCAPED, Probe, python

MEBI = 1 << 20

EXHAUSTIONS = (
    Probe(
        "memory of one process",
        python(f"""
held = bytearray({300 * MEBI})
for at in range(0, len(held), 4096): held[at] = 1
time.sleep(2); escaped()
"""),
        control="anyone",
    ),
    Probe(
        "memory of many processes",
        python(f"""
mine, theirs = os.pipe()
children = []
for _ in range(8):
    children.append(os.fork())
    if not children[-1]:
        held = bytearray({50 * MEBI})
        for at in range(0, len(held), 4096): held[at] = 1
        os.write(theirs, b'x'); time.sleep(60); os._exit(0)
os.close(theirs)
said = b''
while len(said) < 8 and (more := os.read(mine, 100)): said += more
time.sleep(2)
if len(said) == 8 and not any(os.waitpid(pid, os.WNOHANG)[0] for pid in children): escaped()
for pid in children: os.kill(pid, 9)
"""),
        control="anyone",
    ),
    Probe(
        "memory that is shared",
        f"head -c {200 * MEBI} /dev/zero > /dev/shm/$WORD && echo {ESCAPED}; rm -f /dev/shm/$WORD",
        control="anyone",
    ),
    Probe(
        "temporary files",
        f"head -c {200 * MEBI} /dev/zero > /tmp/$WORD && echo {ESCAPED}; rm -f /tmp/$WORD",
        control="anyone",
    ),
    Probe(
        "processes",
        python("""
children = []
try:
    for _ in range(400):
        pid = os.fork()
        if not pid: time.sleep(60); os._exit(0)
        children.append(pid)
    escaped()
except OSError as error: print(error, len(children))
for pid in children: os.kill(pid, 9)
for pid in children: os.waitpid(pid, 0)
"""),
        control="anyone",
    ),
    Probe(
        "one large file",
        f"head -c {200 * MEBI} /dev/zero > large",
        lambda host, _: (host.workspace / "large").stat().st_size > 150 * MEBI,
        "anyone",
    ),
    Probe(
        "a hole as large as a disk",
        "rm -f large; truncate -s 1T large",
        lambda host, _: _size(host, "large") > 150 * MEBI,
        "anyone",
    ),
    Probe(
        "open files",
        python("""
try:
    for _ in range(3000): os.dup(0)
    escaped()
except OSError as error: print(error)
"""),
        control="anyone",
    ),
    Probe(
        "cores",
        "cd \"$PWD\"; ulimit -c unlimited; bash -c 'kill -SEGV $$'; ls core* && echo "
        f"{ESCAPED}; ulimit -c | grep -q unlimited && echo {ESCAPED}",
        control="root",
    ),
    Probe(
        "output",
        "head -c 100000000 /dev/zero | tr '\\0' x",
        lambda _, output: len(output) > 100_000,
    ),
)


def _size(host: Host, name: str) -> int:
    path = host.workspace / name
    return path.stat().st_size if path.exists() else 0
