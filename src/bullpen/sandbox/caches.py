"""Where common tools keep what they have downloaded, and how they are told to keep it elsewhere."""

from collections.abc import Mapping

from msgspec import Struct


class Cache(Struct, frozen=True):
    """The cache of one tool."""

    program: str
    folder: str
    """In the home folder."""
    variable: str
    """Names another place."""


CACHES = (
    Cache("uv", ".cache/uv", "UV_CACHE_DIR"),
    Cache("npm", ".npm", "npm_config_cache"),
    Cache("pip", ".cache/pip", "PIP_CACHE_DIR"),
    Cache("cargo", ".cargo/registry", ""),
    Cache("go", ".cache/go-build", "GOCACHE"),
    Cache("go", "go/pkg/mod", "GOMODCACHE"),
)


def cache_variables(environment: Mapping[str, str], temporary: str) -> dict[str, str]:
    """Return the variables with which tools keep in a temporary folder what they may not keep in their own."""
    return {
        cache.variable: f"{temporary}/cache/{cache.program}-{number}"
        for number, cache in enumerate(CACHES)
        if cache.variable and cache.variable not in environment
    }
