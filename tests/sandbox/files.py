"""Probes of files outside the workspace, and of privileges."""

import stat

from tests.sandbox.host import Host
from tests.sandbox.probe import ESCAPED, Probe, is_outside_changed, python

OTHERS_METADATA = {"landlock": "Landlock does not watch over permissions, owners and times"}

FILES = (
    Probe("read a file outside", 'cat "$OUTSIDE/secret"', control="anyone"),
    Probe("write a file outside", 'echo x > "$OUTSIDE/new"', is_outside_changed, "anyone"),
    Probe("append to a file outside", 'echo x >> "$OUTSIDE/secret"', is_outside_changed, "anyone"),
    Probe("empty a file outside", 'truncate -s 0 "$OUTSIDE/secret"', is_outside_changed, "anyone"),
    Probe("delete a file outside", 'rm -f "$OUTSIDE/secret"', is_outside_changed, "anyone"),
    Probe(
        "rename a file outside",
        'mv "$OUTSIDE/secret" "$OUTSIDE/mine"',
        is_outside_changed,
        "anyone",
    ),
    Probe(
        "list a folder outside",
        f'ls "$OUTSIDE" | grep -q secret && echo {ESCAPED}',
        control="anyone",
    ),
    Probe(
        "open a file outside up to all",
        'chmod 0777 "$OUTSIDE/secret"',
        lambda host, _: stat.S_IMODE((host.outside / "secret").stat().st_mode) == 0o777,
        "anyone",
        gaps=OTHERS_METADATA,
    ),
    Probe("read by ..", "cat ../outside/secret", control="anyone"),
    Probe("write by ..", "echo x > ../outside/new", is_outside_changed, "anyone"),
    Probe("read by a symlink", 'ln -sfn "$OUTSIDE/secret" link; cat link', control="anyone"),
    Probe(
        "write by a linked folder",
        'ln -sfn "$OUTSIDE" folder; echo x > folder/new',
        is_outside_changed,
        "anyone",
    ),
    Probe(
        "give a file outside a name inside",
        'ln "$OUTSIDE/secret" hard && echo x >> hard',
        is_outside_changed,
        "anyone",
    ),
    Probe(
        "move a file outside",
        'echo x > mine; mv mine "$OUTSIDE/mine"',
        is_outside_changed,
        "anyone",
    ),
    Probe(
        "race a symlink",
        python("""
os.makedirs('place', exist_ok=True); os.symlink(name('OUTSIDE'), 'other')
flipper = os.fork()
while flipper == 0: libc.renameat2(-100, b'place', -100, b'other', 2)
end, seen, made = time.monotonic() + float(name('RACING')), '', False
while time.monotonic() < end and not (seen and made):
    try: seen = seen or open('place/secret').read()
    except OSError: pass
    try:
        open('place/new', 'w').close()
        made = made or os.path.exists(name('OUTSIDE') + '/new')
    except OSError: pass
os.kill(flipper, 9); print(seen)
if made: escaped()
"""),
        control="anyone",
    ),
    Probe(
        "the root of a process outside",
        'cat "/proc/$VICTIM/root/$OUTSIDE/secret"',
        control="anyone",
    ),
    Probe("the folder of a process outside", 'cat "/proc/$VICTIM/cwd/secret"', control="anyone"),
    Probe("the root of the first process", 'cat "/proc/1/root$OUTSIDE/secret"', control="root"),
    Probe(
        "a descriptor that leads outside",
        python("""
for one in os.listdir('/proc/self/fd'):
    try: print(open(os.open('../outside/secret', os.O_RDONLY, dir_fd=int(one))).read())
    except (OSError, ValueError): pass
"""),
    ),
    Probe("the passwords", f"head -c 1 /etc/shadow | grep -q . && echo {ESCAPED}", control="root"),
    Probe(
        "write to the system",
        f"(: > /usr/lib/$WORD) && rm /usr/lib/$WORD && echo {ESCAPED}",
        control="root",
    ),
    Probe(
        "write to the system's settings",
        f"(: > /etc/$WORD) && rm /etc/$WORD && echo {ESCAPED}",
        control="root",
    ),
)

PRIVILEGES = (
    Probe(
        "become root",
        python("""
for change in (os.setuid, os.seteuid, os.setgid):
    try: change(0); escaped(change)
    except OSError: pass
"""),
        control="root",
    ),
    Probe(
        "capabilities",
        f"grep -q 'CapEff:.*[1-9a-f]' /proc/self/status && echo {ESCAPED}; "
        f"grep -q 'CapPrm:.*[1-9a-f]' /proc/self/status && echo {ESCAPED}",
        control="root",
    ),
    Probe(
        "a program that is root's",
        f"for f in su mount passwd chsh; do p=$(command -v $f) && "
        f"[ -u $p ] && grep -q 'NoNewPrivs:.0' /proc/self/status && echo {ESCAPED}; done",
    ),
    Probe(
        "leave a set-user program",
        "cp /bin/true suid && chmod u+s suid",
        lambda host, _: _has_mode(host, "suid", stat.S_ISUID),
        "anyone",
    ),
    Probe(
        "leave a set-group program",
        "cp /bin/true sgid && chmod 2755 sgid",
        lambda host, _: _has_mode(host, "sgid", stat.S_ISGID),
        "anyone",
    ),
    Probe(
        "make a set-user file at once",
        python("os.close(os.open('made', os.O_CREAT | os.O_WRONLY, 0o4755))"),
        lambda host, _: _has_mode(host, "made", stat.S_ISUID),
        "anyone",
    ),
    Probe(
        "groups of the worker",
        python("""
if os.getgroups() not in ([], [os.getgid()]) and 0 in os.getgroups(): escaped()
"""),
        gaps={"landlock": "it is the worker's user, with that user's groups"},
    ),
)


def _has_mode(host: Host, name: str, bit: int) -> bool:
    path = host.workspace / name
    return path.exists() and bool(path.stat().st_mode & bit)
