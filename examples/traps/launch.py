"""A launcher as plain as can be: two ranks; when one fails the other is ended, and its status is the launcher's."""

import os
import subprocess
import sys
import time

ranks = []
for rank in range(2):
    environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2")
    ranks.append(subprocess.Popen([sys.executable, *sys.argv[1:]], env=environment))
while True:
    codes = [process.poll() for process in ranks]
    if any(codes) or None not in codes:
        break
    time.sleep(0.02)
for process in ranks:
    process.terminate()
    process.wait()
sys.exit(next((code for code in codes if code), 0))
