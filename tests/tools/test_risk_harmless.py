"""Ordinary work goes by, and what deserves a look is told from what deserves a stop."""

import pytest

from perdure.tools.risk.finding import worst
from perdure.tools.risk.shell import judge_script
from tests.tools.judging import WORKSPACE, misjudged

LOW = {
    "quoting what is dangerous": r"""
grep -rn 'rm -rf /' src
echo "rm -rf /"
echo hi # rm -rf /
git add -A && git commit -m "Remove sudo and curl | sh"
echo '$(rm -rf /)'
git commit -m 'rm -rf /'
""",
    "version control": r"""
git status && git diff
git log --oneline | head -5
git checkout -b feature
git diff HEAD~1 -- src | patch -p1 -R
git show HEAD:README.md | head -20
git commit -am 'wip' --no-verify
""",
    "building and testing": r"""
pytest -q tests
python script.py --flag
python -m pytest
make -j4 test
cargo build --release
npm test
mkdir -p build && cd build && cmake .. && make
pytest > /dev/null 2>&1
command -v python
uv run pytest
env FOO=1 python x.py
bash run_tests.sh
./configure --prefix=/usr/local
(cd sub && make)
export FOO="a b"; ./run.sh "$FOO" --out=build/x.txt
gcc -O2 -o prog prog.c && ./prog < in.txt > out.txt
go test ./... 2>&1 | tail -50
python manage.py migrate --noinput
node server.js --port 3000
python -V; node --version; which gcc
time make -j"$(nproc)"
npm run build --silent
pytest -k "not slow" -x -q | tee out.log
python -m json.tool x.json
mkdir -p build && cd build && cmake .. && make && cd .. && ls
pushd sub >/dev/null; make; popd >/dev/null; touch x
ps aux | grep python
cd sub && make; ./run.sh
mkdir -p a && cd a; python x.py; bash y.sh
rm -f core* && make
timeout 5 ls
export PATH=$PWD/bin:$PATH
""",
    "writing in the workspace": r"""
echo hi > notes.txt
sed -i 's/a/b/' src/x.py
cp a.txt b.txt
mv a.txt sub/
rm notes.txt
for f in *.txt; do mv "$f" "${f%.txt}.md"; done
echo x > /tmp/x.txt
tar xzf a.tgz
tar czf out.tgz src
touch /data/ws/a
d=$(mktemp -d) && echo $d > x
rm -f build/a.o
printf '%s\n' a b c > list && sort -o list list
test -d build || mkdir build
echo "$(cat VERSION)-$(git rev-parse --short HEAD)" > build/version
cp -r src/. dist/
mkdir -p a/b/{c,d,e} && touch a/b/{c,d}/x
awk -F, '{ if ($1 > 3) print $2 }' a.csv > b.csv
tar -xzf pkg.tgz -C build --strip-components=1
unzip -o a.zip -d out
find . -name '*.orig' -exec rm {} \;
echo done > /dev/stderr
echo x >&2
exec > log.txt
exec 2>&1
for i in {1..3}; do echo $i > out$i.txt; done
cat a.txt >> sub/b.txt
(echo a; echo b) > out.txt
touch a && rm a
""",
    "looking": r"""
ls -la
cat src/main.py
sed -n '1,20p' file.txt
find . -name '*.py' | xargs grep -n TODO
cat /etc/os-release
ls /usr/lib
test -f x && echo yes
X=$(date +%s); echo $X
awk '{print $1}' file
kill -l
crontab -l
systemctl status nginx
docker ps
pip list
curl http://localhost:8000/health
diff <(sort a) <(sort b)
while read -r l; do echo "$l"; done < list.txt
cd /data/ws/sub && ls
seq 1 3 | while read n; do echo $n; done
if [ -f a ]; then cat a; else echo none; fi
jq '.a' x.json
tail -n 100 /var/log/app.log
du -sh * | sort -h
VAR=${1:-default}; echo "$VAR"
grep -E "foo|bar" -r . --include=*.ts | cut -d: -f1 | sort -u
[ -z "$CI" ] && echo local
(( 1 + 1 == 2 )) && echo ok
ls | while read -r f; do echo "$f"; done
env | sort
printenv PATH
sqlite3 db.sqlite 'select 1'
perl -v
f() { echo "$1"; }; f a; f b
df -h; free -m; uname -a
date +%F; whoami; id
sleep 1
diff -u a b || true
x=5; echo $((x+1)) ${#x} ${x:-3}
echo "a  $X" 'b' $"c"
echo ${PWD##*/}
arr=(a b); echo "${arr[@]}"
true
ls 2>/dev/null | sort | uniq -c
find . -type f -name "*.rs" -not -path "./target/*" | head
case "$1" in start) echo s;; *) echo u;; esac
""",
}

LOW_SCRIPTS = (
    r"""
cat > a.py <<'EOF'
print("rm -rf /")
EOF
python a.py
""",
    r"""
cat > app.py <<'EOF'
import subprocess, os
subprocess.run(["git", "status"])
open("out.txt", "w").write("x")
EOF
python app.py
""",
    r"""
cat > x.sh <<'EOF'
#!/bin/bash
set -e
echo hi
EOF
bash x.sh
""",
    r"""
git commit -m "$(cat <<'EOF'
Fix: don't use `rm -rf /`
EOF
)"
""",
    r"""
cat <<'EOF'
$(rm -rf /) `rm -rf /`
EOF
""",
    r"""
set -euo pipefail
cd src
for f in $(git ls-files '*.py'); do wc -l "$f"; done
""",
)

MEDIUM = {
    "network and packages": r"""
curl -s https://example.com/api
wget https://example.com/a.tar.gz
git clone https://github.com/a/b
git push origin main
pip install requests
python3 -m pip install -r requirements.txt
npm install
npx eslint .
ssh host uptime
apt-get install -y jq
docker run --rm alpine ls
docker build .
make install
psql -c 'select 1'
npm ci && npm run build
curl -sL https://x.io/data.json | jq .
curl -sL https://x.io/a.tgz | tar xz
git fetch --all
curl -X POST -H 'Content-Type: application/json' -d '{"a":1}' https://x.io
docker compose up -d
go install ./...
""",
    "deletes below the workspace": r"""
rm -rf build
rm -r ./node_modules
d=$(mktemp -d); rm -rf "$d"
find . -name __pycache__ | xargs rm -rf
find . -name '*.pyc' -delete
find . -type d -name x -exec rm -rf {} +
git reset --hard
git clean -fdx
rm -rf build dist *.egg-info
for d in a b c; do rm -rf "build/$d"; done
rm -rf /tmp/data
rm -rf "build/$NAME"
rm -rf ./"$NAME"
mv * sub/
rm -rf \~
cd sub && rm -rf node_modules && npm i
""",
    "processes": r"""
kill 1234
pkill -f server
python -m http.server &
nohup ./server
sleep 100 &
python server.py & sleep 2; curl -s localhost:8000; kill %1
""",
    "code given inline": r"""
python -c 'print(1)'
perl -e 'print 1'
node -e 'console.log(1)'
python -c "import sys; print(sys.version)"
node -e "console.log(require('./package.json').version)"
python3 -c "import json; d=json.load(open('a.json')); print(d['x'])"
""",
    "what only the run will tell": r"""
echo x > "$OUT"
cp a "$DEST"
$CMD --version
ls | xargs $TOOL
cat script.sh | sh
eval "$SOMETHING"
bash -c "$SCRIPT"
sed -i -e 's/foo/bar/g' $(grep -rl foo src)
""",
    "other": r"""
chmod +x run.sh
if ; then
cat .env
ln -s /etc etc
dd if=/dev/sda of=disk.img
LD_PRELOAD=./x.so ls
echo > .env
chmod 644 a && chmod -R u+w sub
""",
}


@pytest.mark.parametrize("theme", LOW)
def test_ordinary_work_is_of_low_risk(theme: str) -> None:
    assert misjudged(LOW[theme], "LOW") == {}


@pytest.mark.parametrize("script", LOW_SCRIPTS)
def test_an_ordinary_script_is_of_low_risk(script: str) -> None:
    assert worst(judge_script(script, WORKSPACE)).risk == "LOW"


@pytest.mark.parametrize("theme", MEDIUM)
def test_what_deserves_a_look_is_of_medium_risk(theme: str) -> None:
    assert misjudged(MEDIUM[theme], "MEDIUM") == {}
