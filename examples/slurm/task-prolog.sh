#!/bin/bash
# Slurm TaskProlog: gives each task of a job the hook.
#
# slurm.conf: TaskProlog=/etc/slurm/task-prolog.d/50-datawait.sh
# It runs as the job's user with the environment of the task; Slurm reads its stdout, `export NAME=value` (srun(1), --task-prolog).
# Whoever sets DATAWAIT_SPOOL or DATAWAIT_HOOK=off in the batch script has decided for themselves.
run=${DATAWAIT_RUN:-/run/datawait}
hook=${DATAWAIT_HOOK_DIR:-/opt/datawait/hook} # made once by: datawait hook /opt/datawait/hook

if [ -z "$DATAWAIT_SPOOL" ] && [ "$DATAWAIT_HOOK" != off ] && [ -r "$hook/sitecustomize.py" ] && [ -d "$run/spool" ]; then
  spool=$run/spool/$SLURM_JOB_ID
  if [ ! -O "$spool" ] || [ -L "$spool" ]; then
    spool=$run/spool # the hook makes a folder of the user's own there
  fi
  echo "export DATAWAIT_SPOOL=$spool"
  echo "export PYTHONPATH=$hook${PYTHONPATH:+:$PYTHONPATH}"
fi
exit 0
