#!/bin/bash
# Slurm Prolog: makes a spool folder for the job on this node, and writes down which GPUs are its.
#
# slurm.conf: Prolog=/etc/slurm/prolog.d/50-datawait.sh
#             PrologFlags=Alloc          (before the job's first step on every node, not with it)
# It runs as root on each node (slurm.conf(5), Prolog). A prolog that fails drains the node, so this one always succeeds: without the
# folder the job trains as ever, and its rings lie in the folder that its user has in the spool.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
run=${DATAWAIT_RUN:-/run/datawait}

number() { case $1 in '' | *[!0-9]*) return 1 ;; esac; }

# The spool is open to all (mode 1777), so the name may be taken by somebody who guessed the number: then it is left alone.
make_folder() {
  local folder=$run/spool/$SLURM_JOB_ID
  mkdir -m 0700 "$folder" 2>/dev/null && chown -h "$SLURM_JOB_UID" "$folder"
}

# One file for each GPU, with a job on every line: the job mapping of dcgm-exporter (--hpc-job-mapping-dir), which the agent reads where
# DCGM_HPC_JOB_MAPPING_DIR names it. Where a site has one already, leave this out and name that.
map_gpus() {
  local gpu
  mkdir -p "$run/gpus" || return
  exec 9>"$run/gpus/.lock" && flock -w 5 9 || return
  for gpu in ${SLURM_JOB_GPUS//,/ }; do
    number "$gpu" || continue # a MIG slice: its processes tell whose it is
    grep -qsx "$SLURM_JOB_ID" "$run/gpus/$gpu" || echo "$SLURM_JOB_ID" >>"$run/gpus/$gpu"
  done
}

if [ -d "$run/spool" ] && number "$SLURM_JOB_ID" && number "$SLURM_JOB_UID"; then
  make_folder
  map_gpus
fi
exit 0
