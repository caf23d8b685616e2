"""People and agents on the full screen, from the first word to the last."""

from tests.tui.stage import Scene, Script, Stage

HELLO: Script = [
    {"think": "Where do I start?"},
    {"tool": {"name": "Bash", "input": {"command": "ls src"}, "output": "login.py\n"}},
    {"say": "I found **login.py**.\n\n```python\ndef login():\n    return True\n```\n\nDone."},
    {"usage": {"input": 1200, "output": 80}, "cost": 0.02},
]


def test_a_person_speaks_and_an_agent_answers(stage: Stage) -> None:
    stage.agent("max", HELLO)

    async def story(scene: Scene) -> None:
        await scene.sees("Nothing has been said yet", "Shop", "Build the login.", "nobody waits")
        await scene.say("Where is it?")
        await scene.sees("Kim → Max", "Where is it?")
        await scene.quiet()

        await scene.sees("I found login.py.", "def login():", "thinking · 1 tool", "1.3k tok", "$0.020")

    stage.play(story)
