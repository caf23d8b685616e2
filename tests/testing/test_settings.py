"""The settings that point a genuine CLI at scripted models."""

import json
import tomllib
from pathlib import Path

import pytest

from bullpen.testing.settings import claude_settings, codex_settings, gemini_settings, qwen_settings

URL = "http://127.0.0.1:4711"


@pytest.fixture(autouse=True)
def somebodys_own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    for name in ("ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "GOOGLE_API_KEY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "private")


def common(home: Path) -> dict[str, str]:
    assert (home / "tmp").is_dir()
    return {"PATH": "/usr/bin", "HOME": str(home), "TMPDIR": str(home / "tmp"), "LANG": "C.UTF-8"}


def test_claude_is_told_by_its_environment(tmp_path: Path) -> None:
    settings = claude_settings(URL, tmp_path / "home")

    assert settings.arguments == ()
    assert settings.env == {
        **common(tmp_path / "home"),
        "ANTHROPIC_BASE_URL": URL,
        "ANTHROPIC_API_KEY": "sk-ant-scripted",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
    }


def test_codex_is_told_by_arguments_that_are_toml(tmp_path: Path) -> None:
    settings = codex_settings(URL, tmp_path)

    assert set(settings.arguments[::2]) == {"-c"}
    assert tomllib.loads("\n".join(settings.arguments[1::2])) == {
        "model": "gpt-5.5",
        "model_provider": "scripted",
        "model_providers": {
            "scripted": {
                "name": "scripted",
                "base_url": f"{URL}/v1",
                "env_key": "SCRIPTED_API_KEY",
                "wire_api": "responses",
                "request_max_retries": 1,
                "stream_max_retries": 1,
            }
        },
        "features": {"plugins": False},
        "analytics": {"enabled": False},
        "check_for_update_on_startup": False,
    }
    assert settings.env == {
        **common(tmp_path),
        "CODEX_HOME": str(tmp_path / ".codex"),
        "SCRIPTED_API_KEY": "sk-scripted",
    }
    assert (tmp_path / ".codex").is_dir()


def test_gemini_is_told_by_its_environment_and_a_file(tmp_path: Path) -> None:
    settings = gemini_settings(URL, tmp_path)

    assert settings.arguments == ()
    assert settings.env == {
        **common(tmp_path),
        "GEMINI_API_KEY": "AIza-scripted",
        "GEMINI_CLI_NO_RELAUNCH": "1",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GOOGLE_GEMINI_BASE_URL": URL,
    }
    assert json.loads((tmp_path / ".gemini" / "settings.json").read_text(encoding="utf-8")) == {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False, "maxAttempts": 2},
    }


def test_qwen_is_told_by_its_environment_and_a_file(tmp_path: Path) -> None:
    settings = qwen_settings(URL, tmp_path)

    assert settings.arguments == ()
    assert settings.env == {
        **common(tmp_path),
        "OPENAI_API_KEY": "sk-scripted",
        "OPENAI_BASE_URL": f"{URL}/v1",
        "OPENAI_MODEL": "qwen3-coder-plus",
        "QWEN_CODE_NO_RELAUNCH": "true",
    }
    assert json.loads((tmp_path / ".qwen" / "settings.json").read_text(encoding="utf-8")) == {
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False},
        "memory": {"enableManagedAutoMemory": False},
        "model": {"generationConfig": {"maxRetries": 0}},
    }
