"""One conversation, and the prompt each kind of agent would get to answer it."""

from bullpen.context import ContextManager
from bullpen.messages import MessageDraft, Speaker

kailai = Speaker(role_id="kailai", role_name="kailai", type="human")
max_ = Speaker(role_id="max", role_name="max", type="ai")
conversation = ContextManager()
conversation.add_message(MessageDraft(speaker=kailai, content="Where do we start? [NEXT: max]"))
conversation.add_message(MessageDraft(speaker=max_, content="With the login:\n\n    set_cookie(🍪)\n\n[NEXT: sarah]"))
for agent in ("claude", "gemini"):
    source = conversation.get_context_for_agent("sarah", agent, system_instruction="You are Sarah.")
    output = conversation.assemble_prompt(agent, source)
    print(f"--- {agent}: {output.report.total_bytes} bytes, system text beside it: {output.system_flag}")
    print(output.prompt)
