"""Whether a CLI is signed in, as far as it tells without a model."""

from pathlib import Path

import pytest

from bullpen.agents.codex import SPEC
from bullpen.agents.sign_in import signed_in


@pytest.mark.parametrize(("settings", "expected"), [("", False), ('model_provider = "ollama"\n', None)])
async def test_a_codex_with_other_models_may_need_no_login(
    settings: str, expected: bool | None, tmp_path: Path
) -> None:
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\necho Not logged in\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text(settings, encoding="utf-8")

    is_signed_in, _ = await signed_in(SPEC, str(program), {"HOME": str(tmp_path)})

    assert is_signed_in is expected
