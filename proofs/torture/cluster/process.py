"""`python -m proofs.torture.cluster.process MISTAKE MODULE ARGUMENTS`: a module of the tests with a mistake in it."""

import runpy
import sys
import tempfile
from pathlib import Path

from proofs.torture.cluster.mistakes import plant

with tempfile.TemporaryDirectory() as folder:
    plant(sys.argv[1], Path(folder))
module = sys.argv[2]
del sys.argv[1:3]
runpy.run_module(module, run_name="__main__", alter_sys=True)
