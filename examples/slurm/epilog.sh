#!/bin/bash
# Slurm Epilog: takes away what prolog.sh made, once the agent has read the end of it.
#
# slurm.conf: Epilog=/etc/slurm/epilog.d/50-datawait.sh
# It runs as root on each node of the job when that has ended. An epilog that fails drains the node, so this one always succeeds.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
run=${DATAWAIT_RUN:-/run/datawait}

number() { case $1 in '' | *[!0-9]*) return 1 ;; esac; }

# The agent notices within four seconds that a process has ended, and removes its ring with the next look at its counters, five seconds
# later at most. Where none runs nobody will: then, or after ten seconds, the folder goes as it is.
remove_folder() {
  local folder=$run/spool/$SLURM_JOB_ID
  [ -d "$folder" ] && [ ! -L "$folder" ] || return
  for _ in {1..100}; do
    compgen -G "$folder/ring-*" >/dev/null || compgen -G "$folder/uid-*/ring-*" >/dev/null || break
    sleep 0.1
  done
  rm -rf --one-file-system -- "$folder" # follows no link
}

# An empty file stays: it says that the GPU is nobody's.
unmap_gpus() {
  local file left
  [ -d "$run/gpus" ] && exec 9>"$run/gpus/.lock" && flock -w 5 9 || return
  for file in "$run"/gpus/*; do
    if grep -qsx "$SLURM_JOB_ID" "$file"; then
      left=$(grep -vx "$SLURM_JOB_ID" "$file")
      printf '%s' "${left:+$left$'\n'}" >"$file"
    fi
  done
}

if number "$SLURM_JOB_ID"; then
  unmap_gpus
  remove_folder
fi
exit 0
