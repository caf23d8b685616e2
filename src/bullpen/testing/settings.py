"""Settings that make a real CLI use a ModelServer, and nothing else on the network."""

import json
import os
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path

from msgspec import Struct

GEMINI_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False, "maxAttempts": 2},
}
QWEN_SETTINGS = {
    "security": {"auth": {"selectedType": "openai"}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False},
    # Otherwise it asks the model after each turn, in a call like any other, what to remember.
    "memory": {"enableManagedAutoMemory": False},
    "model": {"generationConfig": {"maxRetries": 0}},
}


class CliSettings(Struct, frozen=True, kw_only=True):
    """The environment and extra arguments for a CLI."""

    env: Mapping[str, str]
    """Its whole environment: one of our variables could point it elsewhere."""
    arguments: tuple[str, ...] = ()


def claude_settings(base_url: str, home: Path) -> CliSettings:
    """Return what `claude` needs."""
    env = {
        "ANTHROPIC_BASE_URL": base_url,
        "ANTHROPIC_API_KEY": "sk-ant-scripted",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
    }
    return CliSettings(env=_environment(home) | env)


def codex_settings(base_url: str, home: Path) -> CliSettings:
    """Return what `codex` needs."""
    provider = {
        "name": "scripted",
        "base_url": f"{base_url}/v1",
        "env_key": "SCRIPTED_API_KEY",
        "wire_api": "responses",
        "request_max_retries": 1,
        "stream_max_retries": 1,
    }
    options = {
        "model": "gpt-5.5",
        "model_provider": "scripted",
        **{f"model_providers.scripted.{name}": value for name, value in provider.items()},
        "features.plugins": False,
        "analytics.enabled": False,
        "check_for_update_on_startup": False,
    }
    # codex reads TOML; strings, numbers and booleans are the same in JSON.
    pairs = [("-c", f"{name}={json.dumps(value)}") for name, value in options.items()]
    codex_home = home / ".codex"
    codex_home.mkdir(parents=True, exist_ok=True)
    env = {"CODEX_HOME": str(codex_home), "SCRIPTED_API_KEY": "sk-scripted"}
    return CliSettings(env=_environment(home) | env, arguments=tuple(chain.from_iterable(pairs)))


def gemini_settings(base_url: str, home: Path) -> CliSettings:
    """Return what `gemini` needs, and write its settings file."""
    env = {
        "GEMINI_API_KEY": "AIza-scripted",
        "GEMINI_CLI_NO_RELAUNCH": "1",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GOOGLE_GEMINI_BASE_URL": base_url,
    }
    _write_json(home / ".gemini" / "settings.json", GEMINI_SETTINGS)
    return CliSettings(env=_environment(home) | env)


def qwen_settings(base_url: str, home: Path) -> CliSettings:
    """Return what `qwen` needs, and write its settings file."""
    env = {
        "OPENAI_API_KEY": "sk-scripted",
        "OPENAI_BASE_URL": f"{base_url}/v1",
        "OPENAI_MODEL": "qwen3-coder-plus",
        "QWEN_CODE_NO_RELAUNCH": "true",
    }
    _write_json(home / ".qwen" / "settings.json", QWEN_SETTINGS)
    return CliSettings(env=_environment(home) | env)


def opencode_settings(base_url: str, home: Path) -> CliSettings:
    """Return what `opencode` needs, and write its settings file. By itself it asks nobody before it does something."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{base_url}/v1", "apiKey": "sk-scripted"},
        "models": {name: {"limit": {"context": 1_000_000, "output": 4096}} for name in ("m1", "m2")},
    }
    config = {
        "model": "scripted/m1",
        "provider": {"scripted": provider},
        "permission": dict.fromkeys(("bash", "edit", "webfetch", "external_directory"), "ask"),
        # Otherwise it asks the model for a title, in a call like any other.
        "agent": {"title": {"disable": True}},
    }
    env = {
        "OPENCODE_CONFIG": str(home / "opencode.json"),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        **{f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA", "STATE")},
    }
    _write_json(home / "opencode.json", config)
    return CliSettings(env=_environment(home) | env)


def pi_settings(base_url: str, home: Path) -> CliSettings:
    """Return what `pi` needs, and write its settings files."""
    models = [{"id": name, "contextWindow": 1_000_000, "maxTokens": 4096} for name in ("m1", "m2")]
    compat = {"supportsDeveloperRole": False, "supportsReasoningEffort": False}
    provider = {
        "baseUrl": f"{base_url}/v1",
        "api": "openai-completions",
        "apiKey": "sk-scripted",
        "compat": compat,
        "models": models,
    }
    folder = home / ".pi" / "agent"
    _write_json(folder / "models.json", {"providers": {"scripted": provider}})
    usual = {"defaultProvider": "scripted", "defaultModel": "m1", "retry": {"maxRetries": 1, "baseDelayMs": 100}}
    _write_json(folder / "settings.json", usual)
    env = {"PI_CODING_AGENT_DIR": str(folder), "PI_OFFLINE": "1", "PI_TELEMETRY": "0"}
    return CliSettings(env=_environment(home) | env)


def copilot_settings(base_url: str, home: Path) -> CliSettings:
    """Return what `copilot` needs. Its program unpacks itself into the home."""
    env = {
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_HOME": str(home / ".copilot"),
        "COPILOT_MODEL": "m1",
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_API_KEY": "sk-scripted",
        "COPILOT_PROVIDER_BASE_URL": f"{base_url}/v1",
        "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "1000000",
        "COPILOT_PROVIDER_TYPE": "openai",
    }
    return CliSettings(env=_environment(home) | env)


def vibe_settings(base_url: str, home: Path) -> CliSettings:
    """Return what `vibe-acp` needs, and write its settings file."""
    lines = [
        'active_model = "m1"',
        "enable_telemetry = false",
        "enable_update_checks = false",
        "[[providers]]",
        'name = "scripted"',
        f'api_base = "{base_url}/v1"',
        'api_key_env_var = "SCRIPTED_API_KEY"',
        'backend = "generic"',
        *(f'[[models]]\nname = "{name}"\nprovider = "scripted"\nalias = "{name}"' for name in ("m1", "m2")),
    ]
    folder = home / ".vibe"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text("\n".join(lines), encoding="utf-8")
    env = {"MISTRAL_API_KEY": "scripted", "SCRIPTED_API_KEY": "sk-scripted", "VIBE_HOME": str(folder)}
    return CliSettings(env=_environment(home) | env)


def _write_json(file: Path, value: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value), encoding="utf-8")


def _environment(home: Path) -> dict[str, str]:
    """Return the variables every program needs. The CLIs leave files in TMPDIR, so it is inside home."""
    temporary = home / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home), "TMPDIR": str(temporary), "LANG": "C.UTF-8"}


SETTINGS: dict[str, Callable[[str, Path], CliSettings]] = {
    "claude": claude_settings,
    "codex": codex_settings,
    "gemini": gemini_settings,
    "qwen": qwen_settings,
    "opencode": opencode_settings,
    "pi": pi_settings,
    "copilot": copilot_settings,
    "vibe": vibe_settings,
}
"""What each program needs."""
