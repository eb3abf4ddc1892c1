#!/bin/sh
# Stands on the PATH before a program that runs tests. Asked for tests, it adds what makes the program
# write its results to a private folder; asked for anything else, it is the program itself, and stays on
# the PATH for the tests that the program may start.
name=${0##*/}
here=${0%/*}
rest=
set -f
IFS=:
for entry in $PATH; do
  [ "$entry" = "$here" ] || rest="$rest${rest:+:}$entry"
done
unset IFS
set +f
real=$(PATH=$rest command -v "$name") || { echo "$name: not found" >&2; exit 127; }

# Scripts that set `NODE_OPTIONS` for their runner take ours away.
if [ "$name" = node ]; then
  case $NODE_OPTIONS in
  *lula_hook.cjs*) ;;
  *) [ -n "$LULA_NODE_ADDED" ] && export LULA_NODE_OPTIONS="$NODE_OPTIONS" NODE_OPTIONS="$LULA_NODE_ADDED $NODE_OPTIONS" ;;
  esac
  exec "$real" "$@"
fi

words= options=' '
for word in "$@"; do
  case $word in
  --) break ;;
  -* | +*) options="$options$word " ;;
  *) words="$words $word" ;;
  esac
done
out=${LULA_FOLDER:+$LULA_FOLDER/out/$name-$$}
# The word after which something is added, or `first` or `last`; empty where no tests are run.
after= one= two= ending=xml
[ -n "$LULA_REPORT" ] && [ -d "${LULA_FOLDER:-/nowhere}/out" ] && case "$name$words " in
"go test "*)
  case $options in
  *' -c '* | *' -list'* | *' -json '*) ;;
  *) after=test one=-json ending=jsonl ;;
  esac ;;
"cargo nextest run "* | "cargo nextest r "*)
  # A project's own configuration counts before that of a tool.
  printf '[profile.default]\nfail-fast = false\n[profile.default.junit]\npath = "%s"\n' "$out.xml" > "$out.toml"
  after=nextest two=--tool-config-file one="lula:$out.toml" ;;
"ctest "*)
  case $options in
  *' -N '* | *' --show-only'* | *' -S '* | *' -T '* | *' -D '* | *' -M '* | *' --version '* | *' --help'* | *' --build-and-test '* | *' --print-labels '* | *' --output-junit'*) ;;
  *) after=first two=--output-junit one="$out.xml" ;;
  esac ;;
"deno test "*)
  case $options in
  *' --junit-path'* | *' --no-run '*) ;;
  *) after=test one="--junit-path=$out.xml" ;;
  esac ;;
"deno task "*)
  # What follows the name of a task is added to its end.
  task=${words#* task }
  grep -qsE "\"${task%% *}\"[[:space:]]*:[[:space:]]*\"([^\"]*[;&] *)?deno test[^;&|\"]*\"" deno.json deno.jsonc &&
    after=last one="--junit-path=$out.xml" ;;
"gradle "*) after=first two=--init-script one="$LULA_FOLDER/lula_gradle.gradle" ;;
"java "*gradle-wrapper.jar* | "java "*org.gradle.wrapper.GradleWrapperMain*) after=last two=--init-script one="$LULA_FOLDER/lula_gradle.gradle" ;;
esac
if [ -z "$after" ]; then
  exec "$real" "$@"
fi

# `cargo nextest` takes its options after `run`.
[ "$name" = cargo ] && case "$words " in *" nextest r "*) after=r ;; *) after=run ;; esac
left=$#
[ "$after" = first ] && set -- "$@" ${two:+"$two"} "$one"
while [ "$left" -gt 0 ]; do
  word=$1
  shift
  set -- "$@" "$word"
  if [ "$word" = "$after" ]; then
    set -- "$@" ${two:+"$two"} "$one"
    after=
  fi
  left=$((left - 1))
done
[ "$after" = last ] && set -- "$@" ${two:+"$two"} "$one"

case $name in
gradle | java) exec "$real" "$@" ;;
esac
# What the tests start is not watched.
PATH=$rest
unset LULA_REPORT LULA_FOLDER
: > "$out.begun"
if [ "$name" = go ]; then
  # A person reads what the tests printed, not the events.
  { "$real" "$@"; echo $? > "$out.exit"; } | tee "$out.$ending" | awk '
    !/^\{/ { print; next }
    match($0, /"Output":".*"/) {
      text = substr($0, RSTART + 10, RLENGTH - 11)
      gsub(/\\u003c/, "<", text); gsub(/\\u003e/, ">", text); gsub(/\\u0026/, "\\&", text)
      gsub(/\\t/, "\t", text); gsub(/\\"/, "\"", text); gsub(/\\n/, "", text)
      if (text !~ /^(=== |--- (PASS|SKIP)|    --- (PASS|SKIP))/) print text
    }'
else
  "$real" "$@"
  echo $? > "$out.exit"
  # A project that says where this report goes has it there.
  [ "$name" = cargo ] && [ ! -e "$out.xml" ] && find "${CARGO_TARGET_DIR:-target}/nextest" -name '*.xml' -newer "$out.begun" -exec cat {} + > "$out.xml" 2> /dev/null
fi
exit "$(cat "$out.exit")"
