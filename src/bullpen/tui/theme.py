"""The colours: two themes, and one colour for each member that reads well on both."""

from collections.abc import Mapping

from textual.theme import Theme

from bullpen.view.activity import Activity, Light

DARK = Theme(
    name="bullpen-dark",
    primary="#7aa2f7",
    secondary="#9d7cd8",
    accent="#e0af68",
    warning="#e0af68",
    error="#f7768e",
    success="#73c991",
    foreground="#d5d9e6",
    background="#14161f",
    surface="#1b1e2a",
    panel="#222635",
    dark=True,
    variables={
        "footer-key-foreground": "#7aa2f7",
        "footer-background": "#14161f",
        "footer-item-background": "#14161f",
        "footer-key-background": "#14161f",
        "footer-description-background": "#14161f",
        "border": "#7aa2f7",
        "border-blurred": "#303648",
    },
)
LIGHT = Theme(
    name="bullpen-light",
    primary="#2f5fd0",
    secondary="#7847bd",
    accent="#9a6700",
    warning="#9a6700",
    error="#c4314b",
    success="#1a7f37",
    foreground="#20242f",
    background="#fbfbfd",
    surface="#f1f2f6",
    panel="#e6e8ef",
    dark=False,
    variables={
        "footer-key-foreground": "#2f5fd0",
        "footer-background": "#fbfbfd",
        "footer-item-background": "#fbfbfd",
        "footer-key-background": "#fbfbfd",
        "footer-description-background": "#fbfbfd",
        "border": "#2f5fd0",
        "border-blurred": "#c9cdd9",
    },
)
THEMES = (DARK, LIGHT)

# Of middle lightness, so that each has enough contrast on dark and on light.
COLORS = {
    "cyan": "#1397a8",
    "magenta": "#b457d0",
    "green": "#379d4f",
    "yellow": "#b07d16",
    "blue": "#4a84e8",
    "red": "#dd5566",
    "white": "#868c9e",
}


LIGHTS: dict[Light, str] = {
    "green": "$text-success",
    "red": "$text-error",
    "yellow": "$text-warning",
    "grey": "dim",
}


def sign_of(activity: Activity) -> tuple[str, str]:
    """Return the sign of a state, and its style."""
    return f"{activity.sign} ", LIGHTS[activity.light]


def color_of(colors: Mapping[str, str], member: str) -> str:
    """Return the colour of a member on this screen; `colors` has its name in every door. Others are grey."""
    return COLORS[colors.get(member, "white")]


def is_light(colorfgbg: str) -> bool:
    """Tell from what some terminals say in COLORFGBG, such as "0;15", whether their background is light."""
    return colorfgbg.rpartition(";")[2] in ("7", "15")
