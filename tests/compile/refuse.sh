#!/bin/sh
# refuse.sh TEXT command...   succeeds if the command fails and says TEXT (what it has to say, as a basic expression)
text=$1
shift
if said=$("$@" 2>&1); then
  echo "did not fail: $*"
  exit 1
fi
printf '%s\n' "$said" | grep -q -e "$text" && exit
echo "does not say '$text' but:"
printf '%s\n' "$said"
exit 1
