"""`rm -rf /` is found in whatever way a shell lets it be written."""

import pytest

from perdure.tools.risk.finding import worst
from perdure.tools.risk.shell import judge_script
from tests.tools.judging import WORKSPACE, misjudged

HIGH = {
    "quotes and names": r"""
r''m -rf /
"r"m -rf "/"
\rm -rf /
/bin/rm -rf /
$'\x72m' -rf /
$'rm' -rf $'\x2f'
{rm,-rf,/}
r$@m -rf /
rm -rf /""
rm -rf "/"*
""",
    "variables": r"""
$(echo rm) -rf /
X=rm; $X -rf /
a=r b=m; $a$b -rf /
rm${IFS}-rf${IFS}/
r$()m -rf /
r${x}m -rf /
arr=(rm -rf /); "${arr[@]}"
set -- rm -rf /; "$@"
X='rm -rf /'; eval $X
X='rm -rf /'; $X
$(printf '\162\155') -rf /
X=1 > x rm -rf /
""",
    "substitutions": r"""
echo $(rm -rf /)
[[ -n $(rm -rf /) ]]
a=$(rm -rf /)
declare x=$(rm -rf /)
export X=`rm -rf /`
echo ${x:-$(rm -rf /)}
echo ${x/$(rm -rf /)/}
echo ${arr[$(rm -rf /)]}
echo $(( $(rm -rf /) ))
arr[0]=$(rm -rf /)
X+=$(rm -rf /)
local x; x=$(rm -rf /) y
echo "a $(echo "b $(rm -rf /)")"
`echo rm` -rf /
echo "`rm -rf /`"
echo `echo \`rm -rf /\``
cat <(rm -rf /)
""",
    "commands that run commands": r"""
command rm -rf /
busybox rm -rf /
sh -c 'rm -rf /'
bash -c "bash -c 'rm -rf /'"
bash -xc 'rm -rf /'
sh -c 'rm -rf "$1"' _ /
nohup rm -rf /
timeout 5 rm -rf /
timeout -s KILL 5 rm -rf /
nice -n 5 rm -rf /
xargs rm -rf <<< /
echo / | xargs rm -rf
eval 'rm -rf /'
eval "rm -rf \"\$HOME\""
exec rm -rf /
time rm -rf /
trap 'rm -rf /' EXIT
find . -exec sh -c 'rm -rf /' \;
git rebase -x 'rm -rf /' main
ssh host 'rm -rf /'
watch 'rm -rf /'
pushd / && rm -rf x
vim -c '!rm -rf /' x
coproc rm -rf /
env -i rm -rf /
bash -lc 'rm -rf /'
command -p rm -rf /
builtin eval 'rm -rf /'
time -p rm -rf /
nohup sh -c 'rm -rf /' &
source /dev/stdin <<< 'rm -rf /'
time rm > x -rf /
git -c core.pager='rm -rf /' log
git -c alias.x='!rm -rf /' x
git config alias.x '!rm -rf /'
/usr/bin/env bash -c 'rm -rf /'
alias z='rm -rf'; z /
env X=1 rm -rf /
X=/ sh -c 'rm -rf $X'
GIT_SSH_COMMAND='rm -rf /' git fetch
find / -name x -exec rm -rf {} \;
f() { rm -rf "$1"; }; f /
echo / | xargs -I{} rm -rf {}
awk 'BEGIN{system("rm -rf /")}'
function ls { rm -rf /; }; ls
coproc { rm -rf /; }
sed -i '1e rm -rf /' x
""",
    "pipes and files": r"""
echo '/ fr- mr' | rev | sh
printf '\x72\x6d -rf /' | sh
echo 'rm -rf /' | sh
echo -e '\x72m -rf /' | bash
echo 'rm -rf /' > x.sh; bash x.sh
>x rm -rf /
tee >(sh) <<< 'rm -rf /'
cat a | ( cd /; rm -rf x )
bash x.sh <<< ''; rm -rf /
printf 'rm -rf /\n' | tee x | bash
<<<'rm -rf /' bash
bash<<<"rm -rf /"
a | b | (rm -rf /)
a | rm >x -rf /
echo 'rm -rf /' | cat | sh 2>/dev/null
""",
    "decoded text run": r"""
echo cm0gLXJmIC8= | base64 -d | sh
echo "$PAYLOAD" | base64 --decode | bash
openssl enc -d -in x | sh
eval "$(echo 'cm0gLXJmIC8=' | base64 -d)"
cat key.b64 | base64 -d | bash
xxd -r -p x | sh
""",
    "control flow": r"""
cd / && rm -rf tmp2
! rm -rf /
true && rm -rf / || true
if true; then rm -rf /; fi
while :; do rm -rf /; done
for d in / /usr; do rm -rf $d; done
case x in *) rm -rf /;; esac
(rm -rf /)
rm -rf / &
select x in /; do rm -rf $x; done
while read c; do $c; done <<< 'rm -rf /'
for ((;;)); do rm -rf /; done
rm -rf / >/dev/null 2>&1 &
if rm -rf /; then :; fi
until rm -rf /; do :; done
if false; then :; elif rm -rf /; then :; else :; fi
if false; then :; else rm -rf /; fi
a && b && c && rm -rf /
find . -name x | while read -r f; do rm -rf "/$f"; done
a && rm >x -rf /
! rm >x -rf /
a || b && c | rm 2>&1 -rf /
a && b | sh <<< 'rm -rf /'
{ rm -rf /; }
[ "$a" = b ] || { rm -rf /; }
""",
    "what cannot be parsed": r"""
if ; then rm -rf /
echo "unterminated; rm -rf /
echo a; } ; rm -rf /
""",
}

HIGH_SCRIPTS = (
    r"""
cat <<EOF | sh
rm -rf /
EOF
""",
    r"""
sh <<EOF
rm -rf /
EOF
""",
    r"""
cat > x.sh <<'EOF'
rm -rf /
EOF
sh x.sh
""",
    r"""
cat <<EOF
$(rm -rf /)
EOF
""",
    r"""
cat <<EOF
`rm -rf /`
EOF
""",
    r"""
python - <<'EOF'
import os
os.system("rm -rf /")
EOF
""",
    r"""
cat <<-EOF | bash
	rm -rf /
	EOF
""",
    r"""
bash -s <<EOF
rm -rf /
EOF
""",
    r"""
cat <<EOF > x.sh && sh x.sh
rm -rf /
EOF
""",
    r"""
rm -rf \
 /
""",
    r"""
a && # why
rm >x -rf /
""",
)


@pytest.mark.parametrize("theme", HIGH)
def test_danger_is_found_in_disguise(theme: str) -> None:
    assert misjudged(HIGH[theme], "HIGH") == {}


@pytest.mark.parametrize("script", HIGH_SCRIPTS)
def test_danger_is_found_in_scripts_of_several_lines(script: str) -> None:
    assert worst(judge_script(script.strip("\n"), WORKSPACE)).risk == "HIGH"
