"""Team files to begin with: each template is a TOML file here, filled in with the agents that are installed."""

from bullpen.team.templates.team_text import DEFAULT_PERSON, team_text
from bullpen.team.templates.template import NAMES, Role, Template, template, templates

__all__ = ["DEFAULT_PERSON", "NAMES", "Role", "Template", "team_text", "template", "templates"]
