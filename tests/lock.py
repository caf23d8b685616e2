"""Choose the versions of what the tests need: `make lock`.

requirements.txt is for `make test`; requirements-tools.txt has what everything else here needs besides. Hashes are
written, addresses of registries are not.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS, TOOLS = ROOT / "requirements.txt", ROOT / "requirements-tools.txt"
COMPILE = (
    *("uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"),
    *("--no-emit-index-url", "--no-header", "--extra", "all", "--extra", "cluster", "--extra", "telemetry"),
)


def main() -> None:
    """Write both files."""
    _compile(TESTS, "--group", "test")
    _compile(TOOLS, "--group", "test", "--group", "tools", "--constraint", str(TESTS))
    known = _packages(TESTS)
    TOOLS.write_text("".join(text for name, text in _packages(TOOLS).items() if name not in known), encoding="utf-8")


def _compile(output: Path, *options: str) -> None:
    program = Path(sys.executable).with_name(COMPILE[0])
    command = [str(program), *COMPILE[1:], *options, "pyproject.toml", "--output-file", output.name]
    subprocess.run(command, cwd=ROOT, check=True)


def _packages(file: Path) -> dict[str, str]:
    """Return the lines of each package, by its name."""
    blocks = re.split(r"^(?=\S)", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.split(r"[=\[ ]", block, maxsplit=1)[0]: block for block in blocks if block and block[0] != "#"}


if __name__ == "__main__":
    main()
