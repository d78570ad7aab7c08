"""Commands with subcommands: version control, packages, containers, the machine itself."""

from collections.abc import Iterator
from dataclasses import dataclass

from tools.risk.call import Argv, Call, Rule, Step, group, options
from tools.risk.finding import Finding, high, medium
from tools.risk.git import git
from tools.risk.places import writing

_PUBLISHES = high("It publishes to others.")
_INSTALLS = medium("It fetches and installs software.")
_MACHINE = high("It changes or stops the machine itself.")
_SCHEDULES = high("It arranges for something to run later, outside of this conversation.")
_DESTROYS = high("It destroys what is not in the workspace.")
_REVEALS = high("It reveals credentials.")
_REMOTE = medium("It acts on something outside of this machine.")


@dataclass(frozen=True)
class Words:
    """Rules by the first words that are no options; `otherwise` is for all others."""

    table: tuple[tuple[str, Finding], ...]
    takes: str = ""
    otherwise: Finding | None = None
    harmless: str = ""

    def __call__(self, call: Call) -> Iterator[Step]:
        words = options(call.args, self.takes).operands[:4]
        found = [finding for names, finding in self.table if set(names.split()) & set(words)]
        yield from found
        if self.otherwise and not found and not set(self.harmless.split()) & {*words, *call.args}:
            yield self.otherwise


def _always(finding: Finding) -> Rule:
    def rule(call: Call) -> Iterator[Step]:
        if call.args not in (("--version",), ("--help",), ("-h",)):
            yield finding

    return rule


def _kill(call: Call) -> Iterator[Step]:
    args = list(call.args)
    if args[:1] == ["-l"]:
        return
    yield medium("It ends processes.")
    if args[:1] in (["-s"], ["-n"]):
        args = args[2:]
    elif len(args) > 1 and args[0] != "--" and args[0].startswith("-"):
        args = args[1:]
    if {"1", "-1"} & set(args):
        yield high("It ends every process, or the one that all others hang on.")


def _docker(call: Call) -> Iterator[Step]:
    takes = (
        "-v -w -p -e -u -h --volume --mount --name --network --net --pid --ipc --cap-add --device"
    )
    given = options(call.args, f"{takes} --device")
    sharing = given.of("--net", "--network", "--pid", "--ipc", "--userns", "--uts")
    if given.has("--privileged") or "host" in sharing or given.of("--cap-add", "--device"):
        yield high("It runs a container that is not kept from the machine.")
    mounts = [mount.partition(":")[0] for mount in given.of("-v", "--volume") if ":" in mount]
    for mount in given.of("--mount"):
        settings = dict(part.partition("=")[::2] for part in mount.split(","))
        mounts += [settings[key] for key in ("source", "src") if key in settings]
    for name in mounts:
        if name.startswith(("/", ".", "~")):
            yield from writing(call.places, name)
    yield from _DOCKER(call)


_DOCKER = Words(
    (
        ("push", _PUBLISHES),
        ("run exec create build buildx compose pull", medium("It runs or fetches a container.")),
        ("rm rmi kill stop prune down system volume", medium("It ends or deletes containers.")),
    ),
    takes="-H --host --context -v -w -p -e -u -f --name --volume --network",
)


def _database(call: Call) -> Iterator[Step]:
    yield medium("It works on a database.")
    text = " ".join((*call.args, call.stdin or "")).lower()
    if any(word in text for word in ("drop ", "truncate ", "delete from", "flushall", "flushdb")):
        yield high("It deletes data from a database.")


def _make(call: Call) -> Iterator[Step]:
    if {"install", "uninstall", "deploy", "publish", "release"} & set(call.args):
        yield medium("It installs or publishes.")


def _npx(call: Call) -> Iterator[Step]:
    yield _INSTALLS
    given = options(call.args, "-p --package -c --call --python --from --with", permute=False)
    if given.operands[:1] != ("run",):
        yield Argv(given.operands)


def _keys(call: Call) -> Iterator[Step]:
    if options(call.args).has("--export-secret-keys", "--export-secret-subkeys"):
        yield _REVEALS


def _logs(call: Call) -> Iterator[Step]:
    if any(arg.startswith("--vacuum") for arg in call.args) or (
        call.name == "dmesg" and options(call.args).has("-c", "-C", "--clear")
    ):
        yield high("It wipes the machine's logs.")


_FETCH = "install i add ci update upgrade up create init dlx exec download sync get fetch tool"
_NODE = Words((("publish unpublish deprecate token owner", _PUBLISHES), (_FETCH, _INSTALLS)))
_PYTHON = Words(
    (("publish upload", _PUBLISHES), (f"{_FETCH} lock pip uninstall remove", _INSTALLS))
)
_SYSTEM = Words(
    (
        ("remove purge autoremove erase", high("It removes software from the machine.")),
        (f"{_FETCH} dist-upgrade full-upgrade", _INSTALLS),
    ),
)
_CLOUD = Words(
    (
        ("delete rm rb terminate-instances delete-stack destroy delete-bucket nuke", _DESTROYS),
        ("print-access-token get-login-password get-secret-value secret secrets", _REVEALS),
    ),
    otherwise=_REMOTE,
    harmless="--version --help help version",
)

SERVICES: dict[str, Rule] = {
    "git": git,
    "kill": _kill,
    **group("killall pkill xkill", _always(medium("It ends processes."))),
    "killall5": _always(_MACHINE),
    **group("docker podman nerdctl", _docker),
    "docker-compose": _DOCKER,
    **group("npm yarn pnpm lerna vsce ovsx", _NODE),
    **group("npx bunx pnpx uvx pipx", _npx),
    **group("pip uv poetry hatch flit pdm pipenv conda mamba twine", _PYTHON),
    **group(
        "cargo gem bundle composer go dotnet nuget helm",
        Words(
            (
                ("publish yank push nuget", _PUBLISHES),
                (f"{_FETCH} require restore", _INSTALLS),
            )
        ),
    ),
    **group("mvn gradle gradlew mvnw", Words((("deploy publish release:perform", _PUBLISHES),))),
    **group("apt apt-get aptitude yum dnf apk zypper snap brew port", _SYSTEM),
    **group("dpkg rpm pacman emerge easy_install", _always(_INSTALLS)),
    **group(
        "kubectl oc terraform tofu pulumi aws gcloud flyctl heroku vercel netlify doctl", _CLOUD
    ),
    **group(
        "gh glab hub",
        Words(
            (
                ("delete", _DESTROYS),
                ("token", _REVEALS),
                ("create release merge close edit", _PUBLISHES),
            ),
            otherwise=_REMOTE,
            harmless="--version --help",
        ),
    ),
    **group("psql mysql mariadb redis-cli mongosh mongo clickhouse-client", _database),
    **group("make gmake ninja just", _make),
    **group("gpg gpg2", _keys),
    **group("pass security secret-tool keyring op", _always(_REVEALS)),
    **group(
        "systemctl service rc-service launchctl initctl",
        Words(
            (),
            otherwise=high("It starts, stops or changes a service of the machine."),
            harmless="status list show is-active is-enabled cat list-units --version --status-all",
        ),
    ),
    "crontab": Words((), otherwise=_SCHEDULES, harmless="-l"),
    **group("at batch", _always(_SCHEDULES)),
    "dmesg": _logs,
    "journalctl": _logs,
    **group("shutdown reboot halt poweroff init telinit kexec pm-suspend", _always(_MACHINE)),
    **group(
        "mkfs mke2fs mkswap fdisk sfdisk cfdisk gdisk sgdisk parted wipefs blkdiscard hdparm "
        "cryptsetup lvremove vgremove pvremove zpool mdadm diskutil badblocks partprobe",
        _always(high("It changes a disk below its files.")),
    ),
    **group(
        "useradd userdel usermod groupadd groupdel adduser deluser passwd chpasswd visudo "
        "chsh iptables ip6tables nft ufw firewall-cmd insmod modprobe rmmod sysctl setenforce "
        "swapoff update-rc.d chkconfig setcap hostnamectl timedatectl ldconfig",
        _always(_MACHINE),
    ),
}
