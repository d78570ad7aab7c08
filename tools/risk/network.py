"""Commands that talk to other machines."""

import re
from collections.abc import Iterator

from tools.risk.call import Call, Made, Rule, Script, Step, group, options
from tools.risk.finding import Finding, high, medium
from tools.risk.marks import NETWORK, SECRET
from tools.risk.places import writing

_TALKS = medium("It talks to another machine.")
_SENDS = high("It sends files to another machine.")
_LOCAL = re.compile(r"(https?://)?(localhost|127(\.\d+){3}|\[::1\]|0\.0\.0\.0)(:\d+)?(/.*)?")

_CURL = (
    "-d -F -H -X -o -T -u -A -b -c -e -m -w -x -K -E -r -t -z -C -D --data --data-raw "
    "--data-binary --data-urlencode --json --form --header --request --output --output-dir "
    "--upload-file --user --user-agent --cookie --cookie-jar --referer --max-time --write-out "
    "--proxy --config --cert --key --cacert --retry --retry-delay --connect-timeout "
    "--dump-header --resolve --url"
)
_WGET = (
    "-O -o -P -U -t -T -i -Q -a --output-document --output-file --directory-prefix --post-data "
    "--post-file --body-data --body-file --header --user --password --method --user-agent --tries "
    "--timeout --input-file"
)


def _leaks(call: Call) -> Iterator[Finding]:
    if SECRET in "".join((call.stdin or "", *call.args)):
        yield high("It sends credentials or the environment to another machine.")


def _reach(names: tuple[str, ...]) -> Iterator[Finding]:
    if not names or not all(_LOCAL.fullmatch(name) for name in names):
        yield _TALKS


def _curl(call: Call) -> Iterator[Step]:
    given = options(call.args, _CURL)
    urls = (*given.operands, *given.of("--url"))
    local = bool(urls) and all(_LOCAL.fullmatch(name) for name in urls)
    yield from _leaks(call)
    yield from _reach(urls) if urls else ()
    sent = given.of("-d", "--data", "--data-binary", "--data-urlencode", "--json", "-F", "--form")
    if not local and (
        given.of("-T", "--upload-file")
        or any(re.match(r"@|[^=]*=?[@<]\S", value) for value in sent)
    ):
        yield _SENDS
    for name in given.of("-o", "--output", "--output-dir", "-c", "--cookie-jar", "-D"):
        if name != "-":
            yield from _fetched(call, name)
    if given.has("-O", "-J", "--remote-name"):
        for url in urls:
            yield from _fetched(call, _base(url))


def _wget(call: Call) -> Iterator[Step]:
    given = options(call.args, _WGET)
    yield from _leaks(call)
    yield from _reach(given.operands) if given.operands else ()
    if given.of("--post-file", "--body-file"):
        yield _SENDS
    for name in given.of("-o", "-P", "-a", "--output-file", "--directory-prefix"):
        yield from writing(call.places, name)
    named = given.of("-O", "--output-document")
    directory = next(iter(given.of("-P", "--directory-prefix")), ".")
    for name in named or [f"{directory}/{_base(url)}" for url in given.operands]:
        if name != "-":
            yield from _fetched(call, name)


def _base(url: str) -> str:
    return re.split(r"[?#]", url)[0].rstrip("/").rpartition("/")[2] or "index.html"


def _fetched(call: Call, name: str) -> Iterator[Step]:
    yield from writing(call.places, name)
    yield Made(name, NETWORK)


def _ssh(call: Call) -> Iterator[Step]:
    takes = "-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w"
    given = options(call.args, takes, permute=False)
    yield _TALKS
    yield from _leaks(call)
    for setting in given.of("-o"):
        key, _, value = setting.partition("=")
        if key.lower() in ("proxycommand", "localcommand", "knownhostscommand"):
            yield Script(value)
    if len(given.operands) > 1:
        yield Script(" ".join(given.operands[1:]))


def _scp(call: Call) -> Iterator[Step]:
    names = options(call.args, "-c -F -i -J -l -o -P -S").operands
    yield _TALKS
    if names and re.match(r"[^/]*:", names[-1]):
        yield _SENDS
    else:
        for name in names[-1:]:
            yield from writing(call.places, name)


def _netcat(call: Call) -> Iterator[Step]:
    yield from _leaks(call)
    given = options(call.args, "-p -s -w -q -e -c -i -x -X --exec --sh-exec")
    yield _TALKS
    if not given.has("-z"):
        yield high("It opens a bare connection, over which anything may come and go.")


def _talks(call: Call) -> Iterator[Step]:
    yield _TALKS
    yield from _leaks(call)


def _sends(call: Call) -> Iterator[Step]:  # noqa: ARG001
    yield _SENDS


NETWORKED: dict[str, Rule] = {
    "curl": _curl,
    "wget": _wget,
    **group("ssh mosh autossh", _ssh),
    "scp": _scp,
    **group("nc ncat netcat socat telnet", _netcat),
    **group("ssh-copy-id mail mailx sendmail mutt", _sends),
    **group(
        "aria2c http https xh lynx links w3m ftp sftp lftp tftp ping ping6 dig host nslookup "
        "nmap traceroute whois gsutil rclone s3cmd az ngrok cloudflared tailscale",
        _talks,
    ),
}
