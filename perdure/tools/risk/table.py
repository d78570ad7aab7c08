"""The risks of commands, by their names.

A line `NAMES: PATTERN` holds for a command of one of these names where the pattern is found in its
arguments: they are one line, each with a space before it, in which `\\xa0` (which `\\s` matches)
stands for a space inside an argument. `NAMES = WORDS` is short for one of these words among its
first four arguments.
"""

import re
from collections.abc import Iterator
from typing import TypeAlias

from perdure.tools.risk.finding import high, medium

_RISKS = r"""
HIGH It runs as another user, with that one's rights.
  sudo doas pkexec runuser su chroot nsenter:
HIGH It changes or stops the machine itself.
  killall5 shutdown reboot halt poweroff init telinit kexec pm-suspend useradd userdel: NO_HELP
  usermod groupadd groupdel adduser deluser passwd chpasswd visudo chsh iptables nft: NO_HELP
  ufw firewall-cmd insmod modprobe rmmod sysctl setenforce swapoff chkconfig setcap: NO_HELP
  hostnamectl timedatectl ldconfig update-rc.d ip6tables: NO_HELP
  mount umount: ^ (?!-l|--version)
HIGH It changes a disk below its files.
  mkfs mke2fs mkswap fdisk sfdisk cfdisk gdisk sgdisk parted wipefs blkdiscard hdparm: NO_HELP
  cryptsetup lvremove vgremove pvremove zpool mdadm diskutil badblocks partprobe: NO_HELP
HIGH It starts, stops or changes a service of the machine.
  systemctl service launchctl: ^(?!.* (?:status|list\S*|show|is-\S+|cat|--version)(?: |$)) .
HIGH It arranges for something to run later, outside of this conversation.
  at batch: NO_HELP
  crontab: ^(?! -l)
HIGH It ends every process, or the one that all others hang on.
  kill: ^(?: -[sn] \S+| -(?!-)\S+(?= ))?+(?: \S+)* -?1(?: |$)
HIGH It wipes the shell's history or the machine's logs.
  history: ^ -\w*[cdw]
  journalctl: --vacuum
  dmesg: ^ (?:-\w*[cC]|--clear)
  set: ^ \+o history
HIGH It lets a program run with its owner's rights.
  chmod: ^(?: -\S+)* (?:\S*[+=][rwxX]*s\S*|0*[2-7][0-7]{3})(?: |$)
HIGH It unpacks files to wherever the archive says.
  tar bsdtar gtar: ^ -?\w*P| --absolute-names
HIGH It overwrites or deletes what others have fetched.
  git: ^(?: -\S+ \S+)* push.* (?:-\w*[fd]\w*(?: |$)|--(?:force|mirror|delete|prune)|[+:])
HIGH It rewrites or wipes the history of a repository.
  git: ^(?: -\S+ \S+)* (?:filter-branch|filter-repo|reflog (?:expire|delete)|update-ref -d)
HIGH It makes git run or obey something else.
  git: (?i) (?:-c |config (?:-\S+ )*)core\.(?:hookspath|sshcommand|fsmonitor|pager|editor|askpass)
  git: (?i) (?:-c |config (?:-\S+ )*)\S*\.(?:textconv|driver|cmd|helper|process|command)
  git: (?i) (?:-c |config (?:-\S+ )*)(?:alias\.[^ =]*[ =]!|pager\.|include)
HIGH It publishes to others.
  npm yarn pnpm lerna vsce ovsx = publish unpublish deprecate token owner
  pip uv poetry hatch flit pdm pipenv twine = publish upload
  cargo gem composer dotnet nuget helm = publish yank push nuget
  mvn gradle gradlew mvnw = deploy publish release:perform
  docker podman nerdctl docker-compose = push
  gh glab hub = create release merge close edit
HIGH It removes software from the machine.
  apt apt-get aptitude yum dnf apk zypper snap brew port = remove purge autoremove erase
HIGH It destroys what is not in the workspace.
  kubectl oc terraform tofu pulumi aws gcloud flyctl heroku = delete rm rb destroy nuke
  vercel netlify doctl gh glab hub aws = delete terminate-instances delete-stack delete-bucket
HIGH It reveals credentials.
  git: ^ credential fill
  gh glab hub gcloud aws kubectl = token secret print-access-token get-login-password secrets
  aws = get-secret-value
  gpg gpg2: --export-secret-
  pass security secret-tool keyring op: NO_HELP
HIGH It runs a container that is not kept from the machine.
  docker podman nerdctl: --(?:privileged|cap-add|device|(?:net|network|pid|ipc|userns)[= ]host)
HIGH It deletes data from a database.
  psql mysql mariadb sqlite3 clickhouse-client: (?i)\b(?:drop|truncate|delete\s+from)\s
  redis-cli mongosh mongo: (?i)\bflush(?:all|db)\b|\bdrop
HIGH It sends files to another machine.
  curl: ^(?!.*LOCAL).* (?:-T|--upload-file|(?:-\w*[dF]|--data\S*?|--json|--form)[ =]?\S*?[@<][^ ])
  wget: --(?:post|body)-file
  scp rsync: (?: [^/ ]*:| rsync://)\S*$
  ssh-copy-id mail mailx sendmail mutt:
HIGH It opens a bare connection, over which anything may come and go.
  nc ncat netcat socat telnet: ^(?!.* -\w*z)
MEDIUM It talks to another machine.
  git = fetch pull clone push ls-remote submodule remote send-email
  curl wget: ^(?!.*LOCAL)(?=.* [^-])
  ssh mosh autossh scp aria2c http https xh lynx links w3m ftp sftp lftp tftp ping ping6 dig host:
  nslookup nmap traceroute whois gsutil rclone s3cmd az ngrok cloudflared tailscale nc ncat:
  rsync: [^/ ]*:
MEDIUM It acts on something outside of this machine.
  kubectl oc terraform tofu pulumi aws gcloud flyctl heroku: NO_HELP (?!help|version)
  vercel netlify doctl gh glab hub: NO_HELP (?!help|version)
MEDIUM It offers files to the network.
  python: ^ -m (?:http\.server|SimpleHTTPServer)
MEDIUM It fetches and installs software.
  npm yarn pnpm lerna = FETCH
  pip uv poetry hatch flit pdm pipenv conda mamba = FETCH lock pip uninstall remove
  cargo gem bundle composer go dotnet nuget helm = FETCH require restore
  apt apt-get aptitude yum dnf apk zypper snap brew port = FETCH dist-upgrade full-upgrade
  npx bunx pnpx uvx pipx:
  dpkg rpm pacman emerge easy_install: NO_HELP
  make gmake ninja just = install uninstall deploy publish release
MEDIUM It starts, fetches or ends containers.
  docker podman nerdctl docker-compose = run exec create build buildx compose pull up rm rmi kill
  docker podman nerdctl docker-compose = stop prune down system volume
MEDIUM It works on a database.
  psql mysql mariadb redis-cli mongosh mongo clickhouse-client:
MEDIUM It throws away changes or commits.
  git: ^(?: -\S+ \S+)* (?:reset.* --(?:hard|merge)|clean.* -\w*f|switch.* (?:-f|--force|--discard))
  git: ^(?: -\S+ \S+)* checkout(?: \S+)* (?:-f|--force|--|\.)(?: |$)
  git: ^(?: -\S+ \S+)* (?:restore|prune|rm -\w*[rf]|stash (?:drop|clear)|gc.* --prune)
  git: ^(?: -\S+ \S+)* (?:branch|tag).* (?:-[dD]|--delete)(?: |$)
MEDIUM It changes git's settings for other repositories too.
  git: ^ config.* --(?:global|system)
MEDIUM It changes the owner or the rights of files.
  chmod chown chgrp chattr setfacl:
MEDIUM It destroys files for good.
  shred:
MEDIUM It deletes what the other side does not have.
  rsync: --del
MEDIUM It ends processes.
  kill killall pkill xkill: ^(?! -l)
MEDIUM It leaves a process running in the background.
  nohup setsid disown systemd-run coproc:
"""

_OUTPUTS = r"""
Files that a command writes: the groups of a pattern.
  cp mv install ln: (?:-t ?|--target-directory[ =])(\S+)
  tar bsdtar gtar: (?: -\w*C ?| --directory[ =])(\S+)
  tar bsdtar gtar: ^ -?\w*[cru]\w*f ([^ -]\S*)
  unzip patch: -d ?(\S+)
  7z 7za: -o(\S+)
  cpio: -D ?(\S+)
  sort gcc g++ cc c++ clang ld rustc pandoc patch: (?: -o ?| --output[ =])(\S+)
  zip: ^(?: -\S+)* ([^ -]\S*)
  dd: of=(\S+)
  sed gsed: [\s/;\dgpI$}]w\xa0+([^\s;}]+)
  wget: (?: -P ?| --directory-prefix[ =]| -o ?| --output-file[ =])(\S+)
  git: ^ -C (\S+) (?!status|diff|log|show|blame|grep|ls-files|rev-parse|describe)
  git: clone.* \S*(?::|@|\.git)\S* (\S+)
  git: init(?: -\S+)* ([^ -]\S*)
  git: worktree add .*?([~/.]\S*)
  git: (?:archive|format-patch) .*(?:-o ?|--output\S*[ =])(\S+)
  docker podman nerdctl: (?: -v ?| --volume[ =])([/.]\S*?):
  docker podman nerdctl: --mount .*?(?:source|src)=([^ ,]+)
  find: -f(?:print|print0|printf|ls) (\S+)
Those that write into the current directory.
  tar bsdtar gtar: ^(?!.* (?:-\w*C|--directory))()
  unzip: ^(?!.* -d)()
  git: ^ (?:clone|init) \S+()$
"""

_SCRIPTS = r"""
Scripts that a command has a shell run: the group of a pattern.
  su runuser script flock: (?:-c ?|--command[ =])(\S[^ ]*)
  trap: ^ ([^- ][^ ]*)\s
  watch: ^(?: -\S+(?: [\d.]+)?)* (.+)
  ssh mosh autossh: ^(?: -[bcDEeFIiJLlmoOpQRSWw] ?\S+| -\w+)* \S+ (.+)
  ssh: -o ?(?:Proxy|Local|KnownHosts)Command=([^ ]+)
  vi vim nvim ex: (?:-c|--cmd) :?!([^ ]+)
  awk gawk mawk nawk: (?:\bsystem\(|\|)\s*"([^"]*)"
  sed gsed: (?: |\d|;|\$)e\xa0([^ ]+)
  git: (?i) -c [^ =]*(?:pager|editor|command|fsmonitor|askpass|helper)=!?([^ ]+)
  git: (?:-c |config (?:-\S+ )*)alias\.[^ =]+[ =]!([^ ]+)
  git: (?:rebase .*(?:-x|--exec)[ =]|bisect run |submodule foreach )(.+)
  tar bsdtar gtar: --(?:to-command|checkpoint-action=exec)[ =]([^ ]+)
  rsync: (?:-e |--rsh[ =])([^ ]+)
With more words behind it.
  parallel: ^(?: -\S+(?: \d+)?)* (.+?)(?: :::|$)
  alias: [^ =]+=([^ ]+)
"""

_WRITERS = r"""
Operands that are files to write: a slice of them, and the options that have a value.
  touch mkdir mkfifo mknod truncate sponge tee: : -s -m -d -r -t --size --mode
  gzip gunzip bzip2 bunzip2 xz unxz zstd dos2unix script: : -c
  vi vim nvim ex ed nano emacs: : -c -S -u --cmd
  cp mv install ln: -1: -t -S -m -o -g --target-directory --suffix --mode
  rsync scp: -1: -e -f -c -F -i -o -P -S --rsh --exclude --include
  chmod chown chgrp chattr setfacl: 1: --from --reference
"""

_WRAPPERS = r"""
Operands before the command that is run, and the options that have a value.
  sudo: 0 -u -g -h -p -C -D -R -T -r -t --user --group
  doas pkexec runuser: 0 -u -C -g --user
  env: 0 -u -C --unset --chdir
  timeout: 1 -s -k --signal --kill-after
  chroot taskset chrt flock: 1 -w -E --timeout
  nice ionice: 0 -n -c --adjustment
  time exec: 0 -a -f -o
  stdbuf strace ltrace: 0 -i -e -o -p -s -u -E
  nohup setsid disown systemd-run coproc: 0 -u -p -t
  command builtin busybox toybox fakeroot unbuffer chronic { !: 0
  unshare proot nsenter: 0 -R -w -S -G -r -b -t
  npx bunx pnpx uvx pipx: 0 -p --package --python --from --with
  uv poetry pipenv hatch pdm conda mamba: 1 --with --python -p -n --name --project
"""

_INTERPRETERS = r"""
Options whose value is a program, and others that have a value.
  python pypy ipython: -c , -W -X -m
  perl: -e -E , -I -M -F -0
  ruby: -e , -I -r
  node nodejs bun: -e -p --eval --print , -r --require
  php: -r , -d -c
  lua luajit Rscript osascript: -e , -l
  tclsh expect: -c ,
"""

_PRINTS = """
What a command prints.
  true : cd rm mkdir touch cp mv ln chmod chown test [ sleep wait shift exit kill: nothing
  echo printf: words
  tee head tail sort uniq grep egrep fgrep rg strings less more cat tac bat: input
  sed tr awk gawk mawk cut fold paste perl: changed
  base64 base32 xxd uudecode rev openssl gunzip zcat gzip bunzip2 xz unxz: decoded
  curl wget fetch nc ncat netcat socat aria2c http https xh lynx links ftp ssh: network
  env printenv: environment
  dirname: directory
  find ls git: paths
  mktemp: temporary
"""

_ABBREVIATIONS = {
    "NO_HELP": r"^(?!.* --?(?:version|help)(?: |$))",
    "LOCAL": r" (?:https?://)?(?:localhost|127(?:\.\d+){3}|\[::1\]|0\.0\.0\.0)(?:[:/]\S*)?(?: |$)",
    "FETCH": "install i add ci update upgrade up create init dlx exec download sync get fetch tool",
}


def _rows(table: str) -> Iterator[tuple[str, frozenset[str], str]]:
    heading = ""
    for name, text in _ABBREVIATIONS.items():
        table = table.replace(name, text)
    for line in table.strip("\n").splitlines():
        if match := re.match(r"  (.+?)(:| =)(?: (.*))?$", line):
            names, kind, pattern = match.groups(default="")
            if kind == " =":
                pattern = rf"^(?: \S+){{0,3}} (?:{pattern.replace(' ', '|')})(?: |$)"
            yield heading, frozenset(names.split()), pattern
        else:
            heading = line


Patterns: TypeAlias = list[tuple[frozenset[str], re.Pattern[str]]]


def _patterns(table: str) -> Patterns:
    return [(names, re.compile(pattern)) for _, names, pattern in _rows(table)]


def _by_name(table: str) -> dict[str, str]:
    return {name: text for _, names, text in _rows(table) for name in names}


def find_all(patterns: Patterns, name: str, line: str) -> Iterator[str]:
    """Yield what the groups of the patterns for a command find in its arguments."""
    for names, pattern in patterns:
        if name in names:
            yield from (text.replace("\xa0", " ") for text in pattern.findall(line))


RISKS = [
    (names, re.compile(pattern), high(why) if risk == "HIGH" else medium(why))
    for heading, names, pattern in _rows(_RISKS)
    for risk, _, why in [heading.partition(" ")]
]
OUTPUTS, SCRIPTS = _patterns(_OUTPUTS), _patterns(_SCRIPTS)
WRITERS, WRAPPERS, INTERPRETERS = map(_by_name, (_WRITERS, _WRAPPERS, _INTERPRETERS))
OUTPUT_KINDS = _by_name(_PRINTS)
SHELLS = frozenset(
    ["sh", "bash", "zsh", "dash", "ksh", "ash", "mksh", "fish", "rbash", "csh", "tcsh"]
)
DELETERS = frozenset(["rm", "rmdir", "unlink", "srm", "trash", "rimraf", "shred", "mv"])
