"""A tool that edits files, in the browser: the lines that it changes, safe."""

from bullpen.turn_events import ToolStarted
from bullpen.view.steps import Steps
from bullpen.web.templates import rendered


def test_an_edit_is_rows_and_none_of_its_text_is_markup() -> None:
    given = {"file_path": "<b>.py", "old_string": "a\n<script>x", "new_string": "a\n<script>y"}
    (step,) = Steps([ToolStarted(id="1", name="Edit", input=given)])

    html = rendered("step.html", step=step, key=step.key, turn="1")

    assert '<span class="context">  a</span><span class="removed">− &lt;script&gt;x</span>' in html
    assert '<span class="added">+ &lt;script&gt;y</span>' in html
    assert "<script>" not in html
    assert "old_string" not in html
