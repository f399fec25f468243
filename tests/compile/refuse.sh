#!/bin/sh
# refuse.sh TEXT LINES command...   succeeds if the command fails and says TEXT (what it has to say, as a basic
# expression), in so many lines at most where LINES is a number. A missing implementation is named by nothing but a
# message about that.
text=$1 lines=$2
shift 2
if said=$("$@" 2>&1); then
  echo "did not fail: $*"
  exit 1
fi
wrong() {
  echo "$1:"
  printf '%s\n' "$said"
  exit 1
}
printf '%s\n' "$said" | grep -q -e "$text" || wrong "does not say '$text' but"
[ -z "$lines" ] || [ "$(printf '%s\n' "$said" | wc -l)" -le "$lines" ] || wrong "takes more than $lines lines to say '$text'"
case $text in
*needs_GPUKIT*) ;;
*) ! printf '%s\n' "$said" | grep -q 'needs_GPUKIT_IMPLEMENTATION' || wrong "'$text' reads like a missing implementation" ;;
esac
